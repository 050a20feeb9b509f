/* Indexes into arrays. They live in libc's heap, so that a hook may use them. */

#ifndef PAGE87_TABLES_H
#define PAGE87_TABLES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "_arrays.h"

#define EMPTY UINT32_MAX /* an unused slot of an index */

typedef struct {
    uint64_t key[2];
    uint32_t value; /* EMPTY where the slot is free */
} slot_t;

/* An open-addressing index from 128-bit keys to positions in an array. */
typedef struct {
    slot_t *slots;
    size_t mask; /* number of slots - 1, a power of two - 1 */
    size_t used;
} index_t;

static inline size_t
hash_key(uint64_t a, uint64_t b)
{
    uint64_t h = a * 0x9E3779B97F4A7C15u ^ b * 0xC2B2AE3D27D4EB4Fu;
    h ^= h >> 32;
    h *= 0xD6E8FEB86659FD93u;
    return (size_t)(h ^ (h >> 32));
}

static slot_t *
find_slot(const index_t *index, uint64_t a, uint64_t b) /* the key's slot, or the free one for it */
{
    size_t at = hash_key(a, b) & index->mask;
    while (index->slots[at].value != EMPTY
           && (index->slots[at].key[0] != a || index->slots[at].key[1] != b)) {
        at = (at + 1) & index->mask;
    }
    return &index->slots[at];
}

static bool
resize_index(index_t *index, size_t size)
{
    slot_t *slots = malloc(size * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        slots[i].value = EMPTY;
    }
    index_t resized = {slots, size - 1, index->used};
    for (size_t i = 0; index->slots != NULL && i <= index->mask; i++) {
        if (index->slots[i].value != EMPTY) {
            *find_slot(&resized, index->slots[i].key[0], index->slots[i].key[1])
                = index->slots[i];
        }
    }
    free(index->slots);
    *index = resized;
    return true;
}

static uint32_t
look_up(const index_t *index, uint64_t a, uint64_t b)
{
    return index->slots == NULL ? EMPTY : find_slot(index, a, b)->value;
}

/* The key's slot or the free one for it, to be filled by `fill_slot`; NULL when libc has no memory. */
static slot_t *
slot_for(index_t *index, uint64_t a, uint64_t b)
{
    if (index->slots == NULL || index->used * 2 > index->mask) {
        if (!resize_index(index, index->slots == NULL ? 1024 : (index->mask + 1) * 2)) {
            return NULL;
        }
    }
    return find_slot(index, a, b);
}

static inline void
fill_slot(index_t *index, slot_t *slot, uint64_t a, uint64_t b, uint32_t value)
{
    index->used += slot->value == EMPTY;
    *slot = (slot_t){{a, b}, value};
}

static bool
put(index_t *index, uint64_t a, uint64_t b, uint32_t value)
{
    slot_t *slot = slot_for(index, a, b);
    if (slot == NULL) {
        return false;
    }
    fill_slot(index, slot, a, b, value);
    return true;
}

static void
empty_slot(index_t *index, slot_t *slot)
{
    size_t hole = (size_t)(slot - index->slots);
    index->used--;
    /* Keys behind the hole that had to step over it move up, so that no search ends too early. */
    for (size_t at = (hole + 1) & index->mask; index->slots[at].value != EMPTY;
         at = (at + 1) & index->mask) {
        size_t home = hash_key(index->slots[at].key[0], index->slots[at].key[1]) & index->mask;
        if (((at - home) & index->mask) >= ((at - hole) & index->mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->slots[hole].value = EMPTY;
}

static void
drop_index(index_t *index)
{
    free(index->slots);
    *index = (index_t){0};
}

#endif

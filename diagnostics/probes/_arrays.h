/* Arrays that grow. They live in libc's heap, so that a hook may use them. */

#ifndef PAGE87_ARRAYS_H
#define PAGE87_ARRAYS_H

#include <stdbool.h>
#include <stdlib.h>

#define ARRAY(type)                                                                               \
    struct {                                                                                      \
        type *items;                                                                              \
        size_t count;                                                                             \
        size_t capacity;                                                                          \
    }

static bool
grow_array(void **items, size_t *capacity, size_t count, size_t item_size)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity ? *capacity * 2 : 256;
    void *grown = realloc(*items, wanted * item_size);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

/* Room for one more item; false when libc has no memory left. */
#define ROOM(array)                                                                               \
    grow_array((void **)&(array).items, &(array).capacity, (array).count, sizeof *(array).items)

#define DROP_ARRAY(array)                                                                         \
    do {                                                                                          \
        free((array).items);                                                                      \
        (array).items = NULL;                                                                     \
        (array).count = (array).capacity = 0;                                                     \
    } while (0)

#endif

/* The sampled heap engine: which stack, in which unit, do the live bytes come from?
 *
 * It wraps CPython's allocators and picks blocks at random: a point process with exponential gaps
 * (mean `rate` bytes) runs over the allocated bytes, and a block that a point falls into becomes a
 * sample. A block of `size` bytes is picked with probability p = 1 - exp(-size / rate), so it stands
 * for size / p bytes, and every sum of weights is an unbiased estimate of the sum of sizes.
 *
 * The rules of this file:
 *   - a hook never allocates with Python's allocators, never runs Python code, never collects;
 *     its own tables live in libc's heap;
 *   - an allocation that is not picked costs one subtraction, a free one look into a filter;
 *   - most blocks die young: a sample is kept among the newborn first, where it comes and goes
 *     without touching the tables;
 *   - everything behind `lock` may be touched with or without the GIL, since the raw domain is
 *     used without it. Nobody who holds `lock` waits for anything.
 */

/* ---- What depends on the version of CPython stands here, and nowhere else ------------------- */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "the sampled heap engine knows the frames of CPython 3.11, 3.12 and 3.13"
#endif
#ifdef Py_GIL_DISABLED
#error "the sampled heap engine needs the GIL"
#endif

#define Py_BUILD_CORE 1
#include "internal/pycore_frame.h"
#undef Py_BUILD_CORE

#include <stdbool.h>

typedef struct _PyInterpreterFrame frame_t;

static inline frame_t *
first_frame(PyThreadState *thread)
{
#if PY_VERSION_HEX >= 0x030D0000
    return thread->current_frame;
#else
    return thread->cframe->current_frame;
#endif
}

static inline PyCodeObject *
frame_code(frame_t *frame)
{
#if PY_VERSION_HEX >= 0x030D0000
    return (PyCodeObject *)frame->f_executable;
#else
    return frame->f_code;
#endif
}

static inline bool
frame_is_complete(frame_t *frame)
{
    return !_PyFrame_IsIncomplete(frame);
}

static inline int
frame_instruction(frame_t *frame) /* which one of its code runs */
{
    return _PyInterpreterFrame_LASTI(frame);
}

static inline frame_t *
frame_before(frame_t *frame)
{
    return frame->previous;
}

static inline bool
is_in_main_interpreter(PyThreadState *thread)
{
    return thread->interp == PyInterpreterState_Main();
}

static inline PyThreadState *
this_thread_state(void) /* NULL without the GIL */
{
#if PY_VERSION_HEX >= 0x030D0000
    return PyThreadState_GetUnchecked();
#else
    return _PyThreadState_UncheckedGet();
#endif
}

/* ---- From here on: plain C and CPython's public interface ----------------------------------- */

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "_tables.h"

#ifdef CLOCK_MONOTONIC_COARSE /* a few milliseconds are fine enough for a birth, and cost less */
#define COARSE_CLOCK CLOCK_MONOTONIC_COARSE
#else
#define COARSE_CLOCK CLOCK_MONOTONIC
#endif

/* What the hooks seldom do must not cost registers and instructions where they mostly pass. */
#define COLD __attribute__((noinline, cold))

#define MAX_FRAMES 64
#define BLOCK_PARTS 1024
#define SURE 40             /* a block of so many mean gaps is picked, as far as a double can tell */
#define SMALL_BLOCK 512     /* pymalloc passes what is larger on to malloc */
#define OTHER_WEIGHTS 256
#define NO_NODE 0u          /* the root of the tree: no Python frame */
#define NEWBORNS 1024       /* a power of two; they stay in the cache, and so does their filter */
#define FAR_AWAY INT64_MAX  /* a countdown that no thread lives to see end */
#define LOOK_AGAIN (1 << 16) /* bytes after which a thread outside asks whether it is still */

typedef struct {
    int64_t bytes;
    int64_t blocks; /* in 1/BLOCK_PARTS, so that rounding does not bias the sums */
} weight_t;

typedef struct {
    size_t size;
    weight_t weight;
} known_weight_t;

typedef struct {
    uintptr_t address;
    size_t size;
    int64_t birth_ns;
    uint64_t thread;
    uint32_t pair;
} sample_t;

typedef struct { /* a sample that no table knows yet */
    uintptr_t address; /* 0 where nobody is */
    size_t size;
    int64_t birth_ns;
    uint64_t thread;
    uint32_t unit_at; /* its position in `units` */
    uint32_t node;
    weight_t weight;
} newborn_t;

typedef struct { /* what one stack left alive of one unit */
    int64_t unit;
    uint32_t unit_at; /* its position in `units` */
    uint32_t node;
    bool changed;
    bool told; /* a reader has seen it alive */
    weight_t alive;
} pair_t;

typedef struct {
    int64_t unit;
    bool changed;
    int64_t born_bytes;
    int64_t live_bytes;
    int64_t peak_bytes;
} unit_t;

typedef struct { /* a frame in the tree of allocation stacks */
    PyCodeObject *code; /* a strong reference: the address must stay this code's */
    uint32_t parent;
    int line;
    bool changed;
    weight_t alive; /* allocated right here, not below */
} node_t;

typedef struct {
    PyMemAllocatorDomain domain;
    PyMemAllocatorEx original;
} hooked_t;

static struct {
    _Atomic bool enabled;
    _Atomic uint32_t epoch; /* counts the recordings, so that a thread knows a new one */
    atomic_flag lock;

    double rate;
    weight_t small_weights[SMALL_BLOCK + 1]; /* by size, at this rate */
    known_weight_t other_weights[OTHER_WEIGHTS]; /* by size modulo their number */
    size_t max_samples;
    int max_frames;
    bool only_marked_threads;
    PyObject *unit_variable;
    int64_t start_ns;
    uint64_t random[2];

    newborn_t newborns[NEWBORNS]; /* by a hash of the address: the next with the same moves one out */
    ARRAY(sample_t) samples;
    ARRAY(pair_t) pairs;
    ARRAY(uint32_t) free_pairs;
    ARRAY(uint32_t) changed_pairs;
    ARRAY(unit_t) units;
    ARRAY(uint32_t) changed_units;
    ARRAY(node_t) nodes;
    ARRAY(uint32_t) changed_nodes;
    index_t sample_index; /* address -> samples */
    index_t pair_index;   /* (unit, node) -> pairs */
    index_t unit_index;   /* unit -> units */
    index_t node_index;   /* (parent, code, line) -> nodes */
    index_t step_index;   /* (parent, code, instruction) -> nodes */

    uint64_t *filter; /* kept from recording to recording: a bit for each cell that has samples */
    uint8_t *filter_counts; /* how many each has: only adding and removing look there */
    size_t filter_mask;     /* number of cells - 1 */
    size_t filter_mask_limit;

    weight_t alive;
    int64_t small_bytes; /* of what is alive: blocks that fit into pymalloc's arenas */
    uint64_t points; /* blocks picked so far */
    uint64_t dropped;
    uint64_t thinned;
    _Atomic int64_t arena_count;
    _Atomic int64_t arena_bytes;

    hooked_t hooks[3];
    PyObjectArenaAllocator original_arena;
} heap = {
    .lock = ATOMIC_FLAG_INIT,
    .hooks = {{PYMEM_DOMAIN_RAW, {0}}, {PYMEM_DOMAIN_MEM, {0}}, {PYMEM_DOMAIN_OBJ, {0}}},
};

enum { OUTSIDE, INSIDE };

static _Thread_local struct {
    /* Bytes until the next point falls. It is far away inside a hook: a large object asks the raw
     * domain for its memory, through our own hook there. */
    int64_t countdown;
    uint32_t epoch;
    uint8_t membership;
    const hooked_t *looked_for; /* see `is_hooked` */
} mine __attribute__((tls_model("initial-exec")));

static void
lock_heap(void)
{
    while (atomic_flag_test_and_set_explicit(&heap.lock, memory_order_acquire)) {
        sched_yield();
    }
}

static void
unlock_heap(void)
{
    atomic_flag_clear_explicit(&heap.lock, memory_order_release);
}

static int64_t
monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(COARSE_CLOCK, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- Random numbers -------------------------------------------------------------------------- */

static uint64_t
next_random(void) /* xorshift128+ */
{
    uint64_t a = heap.random[0], b = heap.random[1];
    heap.random[0] = b;
    a ^= a << 23;
    heap.random[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return heap.random[1] + b;
}

static double
uniform(void) /* in (0, 1] */
{
    return ((next_random() >> 11) + 1) * 0x1.0p-53;
}

static int64_t
next_gap(void)
{
    double gap = -log(uniform()) * heap.rate;
    return gap < 1e15 ? (int64_t)gap + 1 : (int64_t)1e15;
}

static double
chance(size_t size, double rate) /* that a block becomes a sample */
{
    return -expm1(-(double)size / rate);
}

static weight_t
computed_weight(size_t size)
{
    double picked = chance(size, heap.rate);
    return (weight_t){llround((double)size / picked), llround(BLOCK_PARTS / picked)};
}

static inline weight_t
weight_of(size_t size) /* what a sample of this size stands for */
{
    if (size <= SMALL_BLOCK) {
        return heap.small_weights[size];
    }
    if ((double)size > SURE * heap.rate) {
        return (weight_t){(int64_t)size, BLOCK_PARTS};
    }
    /* Of the sizes in between few are common. */
    if (heap.other_weights[size % OTHER_WEIGHTS].size != size) {
        heap.other_weights[size % OTHER_WEIGHTS] = (known_weight_t){size, computed_weight(size)};
    }
    return heap.other_weights[size % OTHER_WEIGHTS].weight;
}

static void
set_rate(double rate)
{
    heap.rate = rate;
    memset(heap.other_weights, 0, sizeof heap.other_weights);
    for (size_t size = 1; size <= SMALL_BLOCK; size++) {
        heap.small_weights[size] = computed_weight(size);
    }
}

static int64_t
whole_blocks(int64_t parts)
{
    return (parts + BLOCK_PARTS / 2) / BLOCK_PARTS;
}

static void
seed_random(uint64_t seed) /* splitmix64 fills the state */
{
    for (int i = 0; i < 2; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        heap.random[i] = z ^ (z >> 31);
    }
}

/* ---- The filter: may this address be a sample's? --------------------------------------------- */

#define FEWEST_CELLS (1 << 16) /* while samples are few, all bits stay in the cache */
#define FILTER_STUCK UINT8_MAX /* a count that reached the top stays there */

/* A page of memory has one word of bits, so that what is freed together is looked up together;
 * blocks within 64 bytes share a cell. */
static inline size_t
filter_word(const void *address)
{
    return (((uintptr_t)address >> 12) * 0x9E3779B97F4A7C15u >> 32) & (heap.filter_mask >> 6);
}

static inline uint64_t
filter_bit(const void *address)
{
    return (uint64_t)1 << ((uintptr_t)address >> 6 & 63);
}

static inline uint8_t *
filter_count(const void *address)
{
    return &heap.filter_counts[filter_word(address) << 6 | ((uintptr_t)address >> 6 & 63)];
}

static void
filter_add(const void *address)
{
    uint8_t *count = filter_count(address);
    *count += *count != FILTER_STUCK;
    heap.filter[filter_word(address)] |= filter_bit(address);
}

static void
filter_remove(const void *address)
{
    uint8_t *count = filter_count(address);
    if (*count != FILTER_STUCK && --*count == 0) {
        heap.filter[filter_word(address)] &= ~filter_bit(address);
    }
}

static void
empty_filter(void)
{
    memset(heap.filter, 0, (heap.filter_mask >> 6) * sizeof *heap.filter + sizeof *heap.filter);
    memset(heap.filter_counts, 0, heap.filter_mask + 1);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

static uint32_t
unit_position(int64_t unit)
{
    static uint32_t last; /* most samples belong to the unit of the one before */
    if (last < heap.units.count && heap.units.items[last].unit == unit) {
        return last;
    }
    uint32_t found = look_up(&heap.unit_index, (uint64_t)unit, 0);
    if (found == EMPTY) {
        found = (uint32_t)heap.units.count;
        if (!ROOM(heap.units) || !put(&heap.unit_index, (uint64_t)unit, 0, found)) {
            return EMPTY;
        }
        heap.units.items[heap.units.count++] = (unit_t){.unit = unit};
    }
    last = found;
    return found;
}

static uint32_t
pair_position(int64_t unit, uint32_t unit_at, uint32_t node)
{
    uint32_t found = look_up(&heap.pair_index, (uint64_t)unit, node);
    if (found != EMPTY) {
        return found;
    }
    if (heap.free_pairs.count > 0) {
        found = heap.free_pairs.items[heap.free_pairs.count - 1];
    } else if (ROOM(heap.pairs)) {
        found = (uint32_t)heap.pairs.count;
    } else {
        return EMPTY;
    }
    if (!put(&heap.pair_index, (uint64_t)unit, node, found)) {
        return EMPTY;
    }
    if (found == heap.pairs.count) {
        heap.pairs.count++;
    } else {
        heap.free_pairs.count--;
    }
    heap.pairs.items[found] = (pair_t){.unit = unit, .unit_at = unit_at, .node = node};
    return found;
}

static weight_t
negative(weight_t weight)
{
    return (weight_t){-weight.bytes, -weight.blocks};
}

/* What a sample stands for, added to the sums of its unit and of the whole. */
static void
count_in_unit(uint32_t unit_at, size_t size, weight_t more)
{
    unit_t *unit = &heap.units.items[unit_at];
    unit->live_bytes += more.bytes;
    if (unit->live_bytes > unit->peak_bytes) {
        unit->peak_bytes = unit->live_bytes;
    }
    if (!unit->changed && ROOM(heap.changed_units)) {
        unit->changed = true;
        heap.changed_units.items[heap.changed_units.count++] = unit_at;
    }
    heap.alive.bytes += more.bytes;
    heap.alive.blocks += more.blocks;
    if (size <= SMALL_BLOCK) {
        heap.small_bytes += more.bytes;
    }
}

/* The same for the sums of its stack. */
static void
count_in_pair(uint32_t pair_at, weight_t more)
{
    pair_t *pair = &heap.pairs.items[pair_at];
    pair->alive.bytes += more.bytes;
    pair->alive.blocks += more.blocks;
    if (!pair->changed && ROOM(heap.changed_pairs)) {
        pair->changed = true;
        heap.changed_pairs.items[heap.changed_pairs.count++] = pair_at;
    }
    node_t *node = &heap.nodes.items[pair->node];
    node->alive.bytes += more.bytes;
    node->alive.blocks += more.blocks;
    if (!node->changed && ROOM(heap.changed_nodes)) {
        node->changed = true;
        heap.changed_nodes.items[heap.changed_nodes.count++] = pair->node;
    }
}

static void
count_sample(const sample_t *sample, weight_t more)
{
    count_in_unit(heap.pairs.items[sample->pair].unit_at, sample->size, more);
    count_in_pair(sample->pair, more);
}

/* ---- Samples --------------------------------------------------------------------------------- */

static void
remove_sample(slot_t *slot) /* its slot in the index */
{
    uint32_t position = slot->value;
    sample_t gone = heap.samples.items[position];
    empty_slot(&heap.sample_index, slot);
    filter_remove((void *)gone.address);
    count_sample(&gone, negative(weight_of(gone.size)));
    uint32_t last = (uint32_t)--heap.samples.count;
    if (position != last) {
        heap.samples.items[position] = heap.samples.items[last];
        find_slot(&heap.sample_index, heap.samples.items[position].address, 0)->value = position;
    }
}

static newborn_t *
cradle_of(uintptr_t address) /* where the newborn sample of this address would be */
{
    return &heap.newborns[address * 0x9E3779B97F4A7C15u >> 40 & (NEWBORNS - 1)];
}

static void
remove_newborn(newborn_t *newborn)
{
    filter_remove((void *)newborn->address);
    count_in_unit(newborn->unit_at, newborn->size, negative(newborn->weight));
    newborn->address = 0;
}

/* Move a sample from the newborn into the tables; to be followed by `keep_within_bounds`. */
static void
settle_newborn(newborn_t *newborn)
{
    int64_t unit = heap.units.items[newborn->unit_at].unit;
    uint32_t pair = pair_position(unit, newborn->unit_at, newborn->node);
    slot_t *slot = slot_for(&heap.sample_index, newborn->address, 0);
    if (pair == EMPTY || slot == NULL || !ROOM(heap.samples)) {
        remove_newborn(newborn);
        heap.dropped++;
        return;
    }
    if (slot->value != EMPTY) { /* its free went by another road: a hook was out for a while */
        remove_sample(slot);
        slot = find_slot(&heap.sample_index, newborn->address, 0);
    }
    fill_slot(&heap.sample_index, slot, newborn->address, 0, (uint32_t)heap.samples.count);
    heap.samples.items[heap.samples.count++] = (sample_t){
        newborn->address, newborn->size, newborn->birth_ns, newborn->thread, pair,
    };
    count_in_pair(pair, newborn->weight);
    newborn->address = 0;
}

static void
settle_all_newborns(void)
{
    for (size_t i = 0; i < NEWBORNS; i++) {
        if (heap.newborns[i].address != 0) {
            settle_newborn(&heap.newborns[i]);
        }
    }
}

/* Double the mean gap and keep each sample with the chance that it would have had under it. */
static void
thin_samples(void)
{
    settle_all_newborns();
    double before = heap.rate, after = before * 2;
    for (uint32_t i = (uint32_t)heap.samples.count; i-- > 0;) {
        sample_t *sample = &heap.samples.items[i];
        if (uniform() > chance(sample->size, after) / chance(sample->size, before)) {
            remove_sample(find_slot(&heap.sample_index, sample->address, 0));
            heap.thinned++;
        }
    }
    /* What a settled sample stands for is never stored: it follows from its size and the rate. */
    for (size_t i = 0; i < heap.samples.count; i++) {
        count_sample(&heap.samples.items[i], negative(weight_of(heap.samples.items[i].size)));
    }
    set_rate(after);
    for (size_t i = 0; i < heap.samples.count; i++) {
        count_sample(&heap.samples.items[i], weight_of(heap.samples.items[i].size));
    }
}

/* With more samples than an eighth of the filter's cells too many frees would go on to the table.
 * The cells lie in one buffer that is never replaced, since the raw domain looks into it without
 * any lock; a free that looks just while it is refilled can be missed, and `settle_newborn` mends
 * that when the address comes back. */
static void
widen_filter(void)
{
    if (heap.filter_mask == heap.filter_mask_limit) {
        return;
    }
    heap.filter_mask = heap.filter_mask * 2 + 1;
    empty_filter();
    for (size_t i = 0; i < heap.samples.count; i++) {
        filter_add((void *)heap.samples.items[i].address);
    }
    for (size_t i = 0; i < NEWBORNS; i++) {
        if (heap.newborns[i].address != 0) {
            filter_add((void *)heap.newborns[i].address);
        }
    }
}

static void
keep_within_bounds(void)
{
    while (heap.samples.count > heap.max_samples) {
        thin_samples();
    }
    if (heap.samples.count * 8 > heap.filter_mask) {
        widen_filter();
    }
}

/* For those who read the tables. */
static void
bring_up_to_date(void)
{
    settle_all_newborns();
    keep_within_bounds();
}

/* Returns NULL where it could not be taken in. */
static const newborn_t *
add_sample(const void *address, size_t size, int64_t birth_ns, int64_t unit, uint32_t node)
{
    uint32_t unit_at = unit_position(unit);
    if (unit_at == EMPTY) {
        heap.dropped++;
        return NULL;
    }
    newborn_t *newborn = cradle_of((uintptr_t)address);
    if (newborn->address == (uintptr_t)address) { /* see settle_newborn */
        remove_newborn(newborn);
    } else if (newborn->address != 0) {
        settle_newborn(newborn);
        keep_within_bounds();
    }
    *newborn = (newborn_t){
        .address = (uintptr_t)address,
        .size = size,
        .birth_ns = birth_ns,
        .thread = PyThread_get_thread_ident(),
        .unit_at = unit_at,
        .node = node,
        .weight = weight_of(size),
    };
    filter_add(address);
    count_in_unit(unit_at, size, newborn->weight);
    return newborn;
}

/* ---- The stack ------------------------------------------------------------------------------- */

static uint32_t
child_node(uint32_t parent, PyCodeObject *code, int instruction)
{
    /* Two instructions of one line are one node; which line it is is looked up once for each. */
    uint64_t step = (uint64_t)parent << 32 | (uint32_t)instruction;
    uint32_t node = look_up(&heap.step_index, step, (uintptr_t)code);
    if (node != EMPTY) {
        return node;
    }
    int line = PyCode_Addr2Line(code, instruction * (int)sizeof(_Py_CODEUNIT));
    uint64_t place = (uint64_t)parent << 32 | (uint32_t)line;
    node = look_up(&heap.node_index, place, (uintptr_t)code);
    if (node == EMPTY) {
        if (!ROOM(heap.nodes)) {
            return EMPTY;
        }
        node = (uint32_t)heap.nodes.count;
        if (!put(&heap.node_index, place, (uintptr_t)code, node)) {
            return EMPTY;
        }
        Py_INCREF(code);
        heap.nodes.items[heap.nodes.count++] = (node_t){.code = code, .parent = parent, .line = line};
    }
    return put(&heap.step_index, step, (uintptr_t)code, node) ? node : EMPTY;
}

typedef struct {
    PyCodeObject *code;
    int instruction;
    uint32_t node; /* of the stack up to here */
} step_t;

/* The stack of the last sample, outermost frame first. The next one mostly shares its beginning,
 * whose nodes need no looking up then. */
static struct {
    step_t steps[MAX_FRAMES];
    int depth;
} last_stack;

static uint32_t
current_node(PyThreadState *thread)
{
    step_t steps[MAX_FRAMES];
    int depth = 0;
    for (frame_t *frame = first_frame(thread); frame != NULL && depth < heap.max_frames;
         frame = frame_before(frame)) {
        if (frame_is_complete(frame)) {
            steps[depth].code = frame_code(frame);
            steps[depth].instruction = frame_instruction(frame);
            depth++;
        }
    }
    uint32_t node = NO_NODE;
    bool shared = true;
    for (int level = 0; level < depth; level++) {
        const step_t *step = &steps[depth - 1 - level];
        step_t *last = &last_stack.steps[level];
        shared = shared && level < last_stack.depth && last->code == step->code
                 && last->instruction == step->instruction;
        if (!shared) {
            *last = *step;
            last->node = child_node(node, step->code, step->instruction);
            if (last->node == EMPTY) {
                last_stack.depth = level;
                return EMPTY;
            }
        }
        node = last->node;
    }
    last_stack.depth = depth;
    return node;
}

static int64_t
current_unit(void)
{
    PyObject *value = NULL;
    if (PyContextVar_Get(heap.unit_variable, NULL, &value) < 0 || value == NULL) {
        return 0;
    }
    int64_t unit = PyLong_Check(value) ? PyLong_AsLongLong(value) : 0;
    Py_DECREF(value);
    return unit < 0 ? 0 : unit;
}

/* ---- The hooks ------------------------------------------------------------------------------- */

/* Whether the calling thread belongs to the run, and the point that fell to this recording. */
static bool
is_counted(size_t size)
{
    if (mine.epoch != heap.epoch) { /* this thread's first look in this recording */
        mine.epoch = heap.epoch;
        mine.membership = heap.only_marked_threads ? OUTSIDE : INSIDE;
        lock_heap();
        mine.countdown = next_gap() - (int64_t)size;
        unlock_heap();
        if (mine.countdown > 0 && mine.membership == INSIDE) {
            return false;
        }
    }
    if (mine.membership == OUTSIDE) {
        mine.countdown = LOOK_AGAIN;
        return false;
    }
    return true;
}

static COLD void
point_falls(const void *address, size_t size, const hooked_t *hook)
{
    if (address == NULL || !heap.enabled || !is_counted(size)) {
        return;
    }
    PyThreadState *thread = this_thread_state();
    if (hook->domain == PYMEM_DOMAIN_RAW && thread != PyGILState_GetThisThreadState()) {
        thread = NULL; /* it does not have the GIL (PyGILState_Check says so to every one, once there
                        * has been a sub-interpreter) */
    }
    bool counted = thread != NULL && is_in_main_interpreter(thread);
    mine.countdown = FAR_AWAY; /* what the interpreter needs to tell the unit is not the loader's */
    int64_t unit = counted ? current_unit() : 0;
    lock_heap();
    mine.countdown = next_gap();
    if (heap.enabled) {
        heap.points++;
        uint32_t node = counted ? current_node(thread) : EMPTY;
        const newborn_t *born = NULL;
        if (node == EMPTY) {
            heap.dropped++; /* without the GIL nobody may look at frames */
        } else {
            born = add_sample(address, size, monotonic_ns() - heap.start_ns, unit, node);
        }
        if (born != NULL) {
            heap.units.items[born->unit_at].born_bytes += born->weight.bytes;
        }
    }
    unlock_heap();
}

static inline void
note_allocation(const void *address, size_t size, const hooked_t *hook)
{
    if ((mine.countdown -= (int64_t)size) <= 0) {
        point_falls(address, size, hook);
    }
}

typedef struct { /* a sample that a failed realloc may have to give back */
    bool found;
    size_t size;
    int64_t birth_ns;
    int64_t unit;
    uint32_t node;
} taken_t;

static COLD taken_t
take_sample(const void *address)
{
    taken_t taken = {.found = false};
    lock_heap();
    newborn_t *newborn = cradle_of((uintptr_t)address);
    if (newborn->address == (uintptr_t)address && address != NULL) {
        taken = (taken_t){true, newborn->size, newborn->birth_ns,
                          heap.units.items[newborn->unit_at].unit, newborn->node};
        remove_newborn(newborn);
    } else if (heap.enabled && heap.sample_index.slots != NULL) {
        slot_t *slot = find_slot(&heap.sample_index, (uintptr_t)address, 0);
        if (slot->value != EMPTY) {
            const sample_t *sample = &heap.samples.items[slot->value];
            const pair_t *pair = &heap.pairs.items[sample->pair];
            taken = (taken_t){true, sample->size, sample->birth_ns, pair->unit, pair->node};
            remove_sample(slot);
        }
    }
    unlock_heap();
    return taken;
}

static COLD void
forget_sample(const void *address)
{
    take_sample(address);
}

/* A free stands as much in the way as an allocation, so it asks the filter and nothing else: the
 * filter is empty while nothing is recorded. */
static inline bool
may_be_sample(const void *address)
{
    return (heap.filter[filter_word(address)] & filter_bit(address)) != 0;
}

static void
give_back(const void *address, const taken_t *taken)
{
    lock_heap();
    if (heap.enabled) {
        add_sample(address, taken->size, taken->birth_ns, taken->unit, taken->node);
    }
    unlock_heap();
}

static void *
hooked_large_malloc(hooked_t *hook, size_t size)
{
    int64_t countdown = mine.countdown;
    mine.countdown = FAR_AWAY;
    void *address = hook->original.malloc(hook->original.ctx, size);
    mine.countdown = countdown;
    note_allocation(address, size, hook);
    return address;
}

static void *
hooked_malloc(void *context, size_t size)
{
    hooked_t *hook = context;
    if (size > SMALL_BLOCK) { /* the allocator below may ask the raw domain */
        return hooked_large_malloc(hook, size);
    }
    /* Where pymalloc asks it for its tables, that is an allocation like another. */
    void *address = hook->original.malloc(hook->original.ctx, size);
    note_allocation(address, size, hook);
    return address;
}

static void *
hooked_calloc(void *context, size_t count, size_t size)
{
    hooked_t *hook = context;
    int64_t countdown = mine.countdown;
    mine.countdown = FAR_AWAY;
    void *address = hook->original.calloc(hook->original.ctx, count, size);
    mine.countdown = countdown;
    note_allocation(address, count * size, hook);
    return address;
}

static void *
hooked_realloc(void *context, void *old, size_t size)
{
    hooked_t *hook = context;
    if (mine.looked_for == hook) {
        mine.looked_for = NULL;
    }
    /* Forgotten before: without the GIL the old address may be somebody else's a moment later. */
    taken_t taken = {.found = false};
    if (may_be_sample(old)) {
        taken = take_sample(old);
    }
    int64_t countdown = mine.countdown;
    mine.countdown = FAR_AWAY;
    void *address = hook->original.realloc(hook->original.ctx, old, size);
    mine.countdown = countdown;
    if (address != NULL) {
        note_allocation(address, size, hook);
    } else if (taken.found) {
        give_back(old, &taken);
    }
    return address;
}

static void
hooked_free(void *context, void *address)
{
    hooked_t *hook = context;
    if (may_be_sample(address)) {
        forget_sample(address); /* before, for the same reason */
    }
    hook->original.free(hook->original.ctx, address);
}

static void *
hooked_arena_alloc(void *Py_UNUSED(context), size_t size)
{
    void *arena = heap.original_arena.alloc(heap.original_arena.ctx, size);
    if (arena != NULL) {
        heap.arena_count++;
        heap.arena_bytes += (int64_t)size;
    }
    return arena;
}

static void
hooked_arena_free(void *Py_UNUSED(context), void *arena, size_t size)
{
    heap.original_arena.free(heap.original_arena.ctx, arena, size);
    heap.arena_count--;
    heap.arena_bytes -= (int64_t)size;
}

/* ---- Putting the hooks in and out ------------------------------------------------------------ */

/* Whether this domain's calls pass through our hook, perhaps under somebody else's. A realloc tells:
 * it is rarer than the others, which have no time for such questions. */
static bool
is_hooked(const hooked_t *hook)
{
    PyMemAllocatorEx outermost;
    PyMem_GetAllocator(hook->domain, &outermost);
    void *address = outermost.malloc(outermost.ctx, 1);
    if (address == NULL) {
        return true; /* no memory: leave everything as it is */
    }
    mine.looked_for = hook;
    void *moved = outermost.realloc(outermost.ctx, address, 2);
    bool passed = mine.looked_for == NULL;
    mine.looked_for = NULL;
    outermost.free(outermost.ctx, moved == NULL ? address : moved);
    return passed;
}

static void
install(void)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(heap.hooks); i++) {
        hooked_t *hook = &heap.hooks[i];
        if (is_hooked(hook)) {
            continue; /* left in by a stop while another tool lay over us */
        }
        PyMem_GetAllocator(hook->domain, &hook->original);
        PyMemAllocatorEx ours = {
            hook, hooked_malloc, hooked_calloc, hooked_realloc, hooked_free,
        };
        PyMem_SetAllocator(hook->domain, &ours);
    }
    PyObjectArenaAllocator arena;
    PyObject_GetArenaAllocator(&arena);
    if (arena.alloc != hooked_arena_alloc) {
        heap.original_arena = arena;
        PyObjectArenaAllocator ours = {NULL, hooked_arena_alloc, hooked_arena_free};
        PyObject_SetArenaAllocator(&ours);
    }
}

/* Takes out what lies on top. What another tool has wrapped stays in and lets everything through:
 * taking it out would take that tool out too. */
static void
uninstall(void)
{
    for (size_t i = 0; i < Py_ARRAY_LENGTH(heap.hooks); i++) {
        hooked_t *hook = &heap.hooks[i];
        PyMemAllocatorEx outermost;
        PyMem_GetAllocator(hook->domain, &outermost);
        if (outermost.malloc == hooked_malloc && outermost.ctx == hook) {
            PyMem_SetAllocator(hook->domain, &hook->original);
        }
    }
    PyObjectArenaAllocator arena;
    PyObject_GetArenaAllocator(&arena);
    if (arena.alloc == hooked_arena_alloc) {
        PyObject_SetArenaAllocator(&heap.original_arena);
    }
}

/* ---- The module ------------------------------------------------------------------------------ */

static PyObject *
start(PyObject *Py_UNUSED(module), PyObject *args, PyObject *keywords)
{
    static char *names[] = {
        "unit_variable", "rate", "max_samples", "max_frames", "only_marked_threads", "seed", NULL,
    };
    PyObject *variable;
    double rate;
    Py_ssize_t max_samples;
    int max_frames, only_marked_threads;
    unsigned long long seed;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!dnipK:start", names, &PyContextVar_Type,
                                     &variable, &rate, &max_samples, &max_frames,
                                     &only_marked_threads, &seed)) {
        return NULL;
    }
    if (!(rate >= 1) || max_samples < 16 || max_samples > (1 << 26) || max_frames < 1
        || max_frames > MAX_FRAMES) {
        PyErr_Format(PyExc_ValueError,
                     "rate is at least 1, max_samples 16 to %d, max_frames 1 to %d", 1 << 26,
                     MAX_FRAMES);
        return NULL;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_RuntimeError, "only the main interpreter can be recorded");
        return NULL;
    }
    if (heap.enabled) {
        PyErr_SetString(PyExc_RuntimeError, "the sampled heap engine runs already");
        return NULL;
    }

    size_t cells = FEWEST_CELLS;
    while (cells < (size_t)max_samples * 8) {
        cells *= 2;
    }
    if (cells - 1 > heap.filter_mask_limit) {
        uint64_t *filter = calloc(cells >> 6, sizeof *filter);
        uint8_t *counts = calloc(cells, 1);
        if (filter == NULL || counts == NULL) {
            free(filter);
            free(counts);
            return PyErr_NoMemory();
        }
        /* One that is too small is left where it is: where our hooks stayed in under another
         * tool's, a thread without the GIL may be looking into it. */
        heap.filter = filter;
        heap.filter_counts = counts;
        heap.filter_mask_limit = cells - 1;
    }
    lock_heap();
    heap.filter_mask = FEWEST_CELLS - 1;
    set_rate(rate);
    heap.max_samples = (size_t)max_samples;
    heap.max_frames = max_frames;
    heap.only_marked_threads = only_marked_threads;
    heap.start_ns = monotonic_ns();
    heap.alive = (weight_t){0};
    heap.small_bytes = 0;
    last_stack.depth = 0;
    heap.points = heap.dropped = heap.thinned = 0;
    seed_random(seed);
    mine.countdown = 0; /* of other threads each looks at itself when its last gap is over */
    bool ready = ROOM(heap.nodes);
    if (ready) {
        heap.nodes.items[heap.nodes.count++] = (node_t){.parent = NO_NODE}; /* the root */
    }
    heap.epoch++;
    unlock_heap();
    if (!ready) {
        return PyErr_NoMemory();
    }
    Py_XSETREF(heap.unit_variable, Py_NewRef(variable));
    install();
    heap.enabled = true;
    Py_RETURN_NONE;
}

static PyObject *
stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!heap.enabled) {
        Py_RETURN_NONE;
    }
    heap.enabled = false;
    uninstall();
    lock_heap();
    node_t *nodes = heap.nodes.items;
    size_t count = heap.nodes.count;
    heap.nodes.items = NULL;
    DROP_ARRAY(heap.nodes);
    DROP_ARRAY(heap.samples);
    DROP_ARRAY(heap.pairs);
    DROP_ARRAY(heap.free_pairs);
    DROP_ARRAY(heap.changed_pairs);
    DROP_ARRAY(heap.units);
    DROP_ARRAY(heap.changed_units);
    DROP_ARRAY(heap.changed_nodes);
    drop_index(&heap.sample_index);
    drop_index(&heap.pair_index);
    drop_index(&heap.unit_index);
    drop_index(&heap.node_index);
    drop_index(&heap.step_index);
    memset(heap.newborns, 0, sizeof heap.newborns);
    empty_filter();
    unlock_heap();
    for (size_t i = 1; i < count; i++) {
        Py_DECREF(nodes[i].code); /* may free memory, so not under the lock */
    }
    free(nodes);
    Py_CLEAR(heap.unit_variable);
    Py_RETURN_NONE;
}

static PyObject *
rehook(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    bool missing = false;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(heap.hooks); i++) {
        missing |= !is_hooked(&heap.hooks[i]);
    }
    if (missing && heap.enabled) {
        install();
    }
    return PyBool_FromLong(missing);
}

static PyObject *
mark_thread(PyObject *Py_UNUSED(module), PyObject *belongs)
{
    int inside = PyObject_IsTrue(belongs);
    if (inside < 0) {
        return NULL;
    }
    mine.epoch = heap.epoch;
    mine.membership = inside ? INSIDE : OUTSIDE;
    lock_heap();
    mine.countdown = inside ? next_gap() : LOOK_AGAIN;
    unlock_heap();
    Py_RETURN_NONE;
}

/* What changed is copied under the lock and becomes Python objects after it: making them frees and
 * allocates, and the hooks take the same lock. */

static PyObject *
as_bytes(int64_t *numbers, size_t count) /* takes over `numbers` */
{
    if (numbers == NULL) {
        return PyErr_NoMemory();
    }
    PyObject *result = PyBytes_FromStringAndSize((const char *)numbers,
                                                 (Py_ssize_t)(count * sizeof *numbers));
    free(numbers);
    return result;
}

static PyObject *
drain_pairs(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    bring_up_to_date();
    size_t at = 0;
    int64_t *rows = malloc((heap.changed_pairs.count * 4 + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < heap.changed_pairs.count; i++) {
        uint32_t position = heap.changed_pairs.items[i];
        pair_t *pair = &heap.pairs.items[position];
        if (pair->alive.blocks != 0 || pair->told) { /* what came and went in between is no change */
            rows[at++] = pair->unit;
            rows[at++] = pair->node;
            rows[at++] = pair->alive.bytes;
            rows[at++] = whole_blocks(pair->alive.blocks);
        }
        pair->changed = false;
        pair->told = pair->alive.blocks != 0;
        if (pair->alive.blocks == 0 && ROOM(heap.free_pairs)) {
            empty_slot(&heap.pair_index,
                       find_slot(&heap.pair_index, (uint64_t)pair->unit, pair->node));
            heap.free_pairs.items[heap.free_pairs.count++] = position;
        }
    }
    if (rows != NULL) {
        heap.changed_pairs.count = 0;
    }
    unlock_heap();
    return as_bytes(rows, at);
}

static PyObject *
drain_nodes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    bring_up_to_date();
    size_t at = 0;
    int64_t *rows = malloc((heap.changed_nodes.count * 3 + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < heap.changed_nodes.count; i++) {
        node_t *node = &heap.nodes.items[heap.changed_nodes.items[i]];
        rows[at++] = heap.changed_nodes.items[i];
        rows[at++] = node->alive.bytes;
        rows[at++] = whole_blocks(node->alive.blocks);
        node->changed = false;
    }
    if (rows != NULL) {
        heap.changed_nodes.count = 0;
    }
    unlock_heap();
    return as_bytes(rows, at);
}

static PyObject *
drain_units(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    size_t at = 0;
    int64_t *rows = malloc((heap.changed_units.count * 4 + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < heap.changed_units.count; i++) {
        unit_t *unit = &heap.units.items[heap.changed_units.items[i]];
        rows[at++] = unit->unit;
        rows[at++] = unit->born_bytes;
        rows[at++] = unit->live_bytes;
        rows[at++] = unit->peak_bytes;
        unit->changed = false;
    }
    if (rows != NULL) {
        heap.changed_units.count = 0;
    }
    unlock_heap();
    return as_bytes(rows, at);
}

static PyObject *
nodes(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_ssize_t from;
    if (!PyArg_ParseTuple(args, "n:nodes", &from)) {
        return NULL;
    }
    PyObject *result = PyList_New(0);
    if (result == NULL) {
        return NULL;
    }
    for (size_t i = from < 1 ? 1 : (size_t)from;; i++) {
        lock_heap();
        bool there = i < heap.nodes.count;
        node_t node = there ? heap.nodes.items[i] : (node_t){0};
        unlock_heap();
        if (!there) {
            return result;
        }
        PyObject *item = Py_BuildValue("(IOOi)", node.parent, node.code->co_filename,
                                       node.code->co_qualname, node.line);
        if (item == NULL || PyList_Append(result, item) < 0) {
            Py_XDECREF(item);
            Py_DECREF(result);
            return NULL;
        }
        Py_DECREF(item);
    }
}

static PyObject *
samples(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    bring_up_to_date();
    size_t at = 0;
    int64_t *rows = malloc((heap.samples.count * 7 + 1) * sizeof *rows);
    for (size_t i = 0; rows != NULL && i < heap.samples.count; i++) {
        sample_t *sample = &heap.samples.items[i];
        rows[at++] = (int64_t)sample->address;
        rows[at++] = (int64_t)sample->size;
        rows[at++] = weight_of(sample->size).bytes;
        rows[at++] = heap.pairs.items[sample->pair].unit;
        rows[at++] = heap.pairs.items[sample->pair].node;
        rows[at++] = sample->birth_ns;
        rows[at++] = (int64_t)sample->thread;
    }
    unlock_heap();
    return as_bytes(rows, at);
}

static PyObject *
picks(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer sizes;
    double rate;
    unsigned long long seed;
    if (!PyArg_ParseTuple(args, "y*dK:picks", &sizes, &rate, &seed)) {
        return NULL;
    }
    size_t count = (size_t)sizes.len / sizeof(int64_t), at = 0;
    const int64_t *size = sizes.buf;
    int64_t *rows = heap.enabled ? NULL : malloc((count * 3 + 1) * sizeof *rows);
    if (rows != NULL) {
        set_rate(rate);
        seed_random(seed);
        int64_t countdown = next_gap();
        for (size_t i = 0; i < count; i++) {
            if ((countdown -= size[i]) <= 0) {
                rows[at++] = (int64_t)i;
                weight_t weight = weight_of((size_t)size[i]);
                rows[at++] = weight.bytes;
                rows[at++] = weight.blocks;
                countdown = next_gap();
            }
        }
    }
    PyBuffer_Release(&sizes);
    if (heap.enabled) {
        PyErr_SetString(PyExc_RuntimeError, "not while the engine runs");
        return NULL;
    }
    return as_bytes(rows, at);
}

static PyObject *
coarsen(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    if (heap.enabled) {
        thin_samples();
    }
    unlock_heap();
    Py_RETURN_NONE;
}

static PyObject *
live_bytes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (!heap.enabled) {
        Py_RETURN_NONE;
    }
    lock_heap();
    int64_t bytes = heap.alive.bytes;
    unlock_heap();
    return PyLong_FromLongLong(bytes);
}

static PyObject *
status(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    lock_heap();
    size_t tables = heap.samples.capacity * sizeof(sample_t)
                    + heap.pairs.capacity * sizeof(pair_t)
                    + heap.units.capacity * sizeof(unit_t)
                    + heap.nodes.capacity * sizeof(node_t)
                    + (heap.sample_index.mask + heap.pair_index.mask + heap.unit_index.mask
                       + heap.node_index.mask + heap.step_index.mask)
                          * sizeof(slot_t)
                    + sizeof heap.newborns + heap.filter_mask_limit / 8 * 9;
    double rate = heap.rate;
    bring_up_to_date();
    size_t live_samples = heap.samples.count, known_nodes = heap.nodes.count;
    int64_t live_bytes = heap.alive.bytes, live_blocks = whole_blocks(heap.alive.blocks);
    int64_t small_bytes = heap.small_bytes;
    uint64_t points = heap.points, dropped = heap.dropped, thinned = heap.thinned;
    bool enabled = heap.enabled;
    unlock_heap();
    return Py_BuildValue(
        "{s:O,s:d,s:K,s:n,s:n,s:L,s:L,s:L,s:K,s:K,s:n,s:L,s:L}",
        "enabled", enabled ? Py_True : Py_False,
        "rate", rate,
        "points", (unsigned long long)points,
        "samples", (Py_ssize_t)live_samples,
        "nodes", (Py_ssize_t)known_nodes,
        "live_bytes", (long long)live_bytes,
        "live_blocks", (long long)live_blocks,
        "small_bytes", (long long)small_bytes,
        "dropped", (unsigned long long)dropped,
        "thinned", (unsigned long long)thinned,
        "own_bytes", (Py_ssize_t)tables,
        "arena_count", (long long)heap.arena_count,
        "arena_bytes", (long long)heap.arena_bytes);
}

static PyMethodDef functions[] = {
    {"start", (PyCFunction)(void (*)(void))start, METH_VARARGS | METH_KEYWORDS,
     "Begin to sample: unit_variable, rate (mean gap in bytes), max_samples, max_frames,\n"
     "only_marked_threads, seed."},
    {"stop", stop, METH_NOARGS, "Stop sampling and forget everything."},
    {"coarsen", coarsen, METH_NOARGS, "Double the mean gap, and thin the samples to match."},
    {"picks", picks, METH_VARARGS,
     "What would be picked of blocks of the given sizes (int64), by the same arithmetic, for\n"
     "checking it: rows of int64 (position, weight, blocks in 1/1024)."},
    {"rehook", rehook, METH_NOARGS,
     "Put back hooks that another tool took out; returns whether any were missing."},
    {"mark_thread", mark_thread, METH_O,
     "Say whether the calling thread belongs to the run (True) or to the workbench (False)."},
    {"drain_pairs", drain_pairs, METH_NOARGS,
     "The pairs that changed since the last call: rows of int64 (unit, node, bytes, blocks)."},
    {"drain_nodes", drain_nodes, METH_NOARGS,
     "The nodes whose sums changed since the last call: rows of int64 (node, bytes, blocks)."},
    {"drain_units", drain_units, METH_NOARGS,
     "The units that changed since the last call: rows of int64 (unit, born, live, peak bytes)."},
    {"nodes", nodes, METH_VARARGS,
     "The nodes from a number on: (parent, file, function, line); node 0 is the root."},
    {"samples", samples, METH_NOARGS,
     "The live samples: rows of int64 (address, size, weight, unit, node, birth_ns, thread)."},
    {"live_bytes", live_bytes, METH_NOARGS,
     "The estimate of everything alive, for callbacks; None while nothing is sampled."},
    {"status", status, METH_NOARGS, "Rate, numbers of samples and nodes, totals, arenas, drops."},
    {NULL, NULL, 0, NULL},
};

static int
execute(PyObject *Py_UNUSED(module))
{
    static bool once;
    /* A thread outside the GIL may hold the lock at the moment of a fork, and not exist in the
     * child. */
    if (!once && pthread_atfork(lock_heap, unlock_heap, unlock_heap) != 0) {
        PyErr_SetString(PyExc_OSError, "pthread_atfork failed");
        return -1;
    }
    once = true;
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_heap",
    .m_doc = "The core of the sampled heap engine; see sampled.py for its face.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__heap(void)
{
    return PyModuleDef_Init(&definition);
}

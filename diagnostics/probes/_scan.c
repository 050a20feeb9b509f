/* Passes over many objects at the speed of the collector: who refers to these, who lies at these
 * addresses, whose buffers are these.
 *
 * Every function takes a list of objects and addresses as machine words in bytes, and gives a list of
 * those objects that meet the question. It holds the GIL from end to end, so the caller asks for a
 * part of the heap at a time. Nothing is collected and no Python code runs.
 *
 * Tuples and frozensets are never handed out from the collector's list, only where something refers
 * to them: one that another thread is just building (`tuple(generator)`) must not be referred to by
 * anybody else, or its building fails with a SystemError.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_WORDS 8 /* of an object's own struct, where the types in question have their buffers */
#define DEEPEST 4    /* untracked containers inside untracked containers */
#define OLDEST 2     /* generation of the collector */

typedef struct { /* an open-addressing set of addresses; 0 is a free slot */
    uintptr_t *slots;
    size_t mask;
    size_t used;
} set_t;

static size_t
home_of(const set_t *set, uintptr_t address)
{
    return (size_t)((address >> 4) * 0x9E3779B97F4A7C15u >> 20) & set->mask;
}

static bool
contains(const set_t *set, uintptr_t address)
{
    size_t at = home_of(set, address);
    while (set->slots[at] != 0 && set->slots[at] != address) {
        at = (at + 1) & set->mask;
    }
    return set->slots[at] != 0;
}

static bool
make_set(set_t *set, size_t expected)
{
    size_t size = 64;
    while (size < expected * 2) {
        size *= 2;
    }
    *set = (set_t){calloc(size, sizeof *set->slots), size - 1, 0};
    return set->slots != NULL;
}

static bool
add(set_t *set, uintptr_t address) /* whether it is new; a full set takes nothing more */
{
    size_t at = home_of(set, address);
    while (set->slots[at] != 0 && set->slots[at] != address) {
        at = (at + 1) & set->mask;
    }
    if (set->slots[at] == address || set->used * 4 > set->mask * 3) {
        return set->slots[at] != address;
    }
    set->slots[at] = address;
    set->used++;
    return true;
}

static bool
set_of(set_t *set, const Py_buffer *addresses)
{
    size_t count = (size_t)addresses->len / sizeof(uintptr_t);
    if (!make_set(set, count)) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        uintptr_t address = ((const uintptr_t *)addresses->buf)[i];
        if (address != 0) {
            add(set, address);
        }
    }
    return true;
}

/* ---- Who refers to these --------------------------------------------------------------------- */

typedef struct {
    const set_t *wanted;
    const set_t *hidden; /* the only ones to look into, if that is known; else NULL */
    set_t *seen;         /* what was looked into already */
    PyObject *found;     /* a list */
    int depth;
    bool meets;
    bool failed;
} visit_t;

static int visit(PyObject *held, void *context);

static bool
may_be_unfinished(PyObject *item)
{
    return PyTuple_CheckExact(item) || PyFrozenSet_CheckExact(item);
}

/* What does not come by itself, so that it is looked into from whoever refers to it. */
static bool
comes_through_others(PyObject *item)
{
    return (PyTuple_CheckExact(item) && PyTuple_GET_SIZE(item) > 0) || PyFrozenSet_CheckExact(item)
           || (PyDict_CheckExact(item) && PyDict_GET_SIZE(item) > 0
               && !PyObject_GC_IsTracked(item));
}

static void
look_into(PyObject *holder, visit_t *outer)
{
    visit_t inner = *outer;
    inner.depth++;
    inner.meets = inner.failed = false;
    Py_TYPE(holder)->tp_traverse(holder, visit, &inner);
    outer->failed |= inner.failed || (inner.meets && PyList_Append(outer->found, holder) < 0);
}

static int
visit(PyObject *held, void *context)
{
    visit_t *one = context;
    one->meets |= contains(one->wanted, (uintptr_t)held);
    /* Where it is known which ones matter, what is held need not be touched: on a large heap that
     * is what a pass waits for. Many objects may share one: it is looked into once. */
    if (one->depth < DEEPEST && (one->hidden == NULL || contains(one->hidden, (uintptr_t)held))
        && comes_through_others(held) && add(one->seen, (uintptr_t)held)) {
        look_into(held, one);
    }
    return 0;
}

static PyObject *
holders(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects, *never;
    Py_buffer addresses, tuples = {0};
    if (!PyArg_ParseTuple(args, "O!y*O!z*:holders", &PyList_Type, &objects, &addresses,
                          &PyType_Type, &never, &tuples)) {
        return NULL;
    }
    set_t wanted = {0}, seen = {0}, hidden = {0};
    PyObject *found = PyList_New(0);
    bool ready = found != NULL && set_of(&wanted, &addresses)
                 && (tuples.buf == NULL || set_of(&hidden, &tuples))
                 && make_set(&seen, (size_t)PyList_GET_SIZE(objects));
    if (ready) {
        visit_t outer = {
            .wanted = &wanted, .hidden = tuples.buf == NULL ? NULL : &hidden,
            .seen = &seen, .found = found, .depth = -1,
        };
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(objects) && !outer.failed; i++) {
            PyObject *item = PyList_GET_ITEM(objects, i);
            if (Py_TYPE(item)->tp_traverse != NULL && !Py_IS_TYPE(item, (PyTypeObject *)never)) {
                look_into(item, &outer);
            }
        }
        ready = !outer.failed;
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    free(wanted.slots);
    free(hidden.slots);
    free(seen.slots);
    PyBuffer_Release(&addresses);
    PyBuffer_Release(&tuples);
    if (!ready) {
        Py_CLEAR(found);
    }
    return found;
}

/* ---- Who lies there, and whose buffers are these --------------------------------------------- */

typedef struct {
    const set_t *wanted;
    const set_t *types; /* their addresses; of others nobody knows where their buffers are */
    set_t *seen;        /* what was looked into already */
    PyObject *found;    /* a list */
    int depth;
    bool failed;
} buffers_t;

static bool
points_there(PyObject *item, const set_t *wanted)
{
    size_t words = (size_t)Py_TYPE(item)->tp_basicsize / sizeof(uintptr_t);
    for (size_t i = 0; i < words && i < MOST_WORDS; i++) {
        if (contains(wanted, ((const uintptr_t *)item)[i])) {
            return true;
        }
    }
    return false;
}

static void
look_at_buffers(PyObject *item, buffers_t *one)
{
    /* By address: to look a type up in a set of Python's would ask its metaclass for a hash. */
    if (contains(one->types, (uintptr_t)Py_TYPE(item)) && points_there(item, one->wanted)) {
        one->failed |= PyList_Append(one->found, item) < 0;
    }
}

static int
visit_buffers(PyObject *held, void *context)
{
    buffers_t *one = context;
    if (!PyObject_GC_IsTracked(held)) { /* the others come by themselves */
        look_at_buffers(held, one);
    }
    if (one->depth < DEEPEST && comes_through_others(held) && add(one->seen, (uintptr_t)held)) {
        buffers_t inner = *one;
        inner.depth++;
        Py_TYPE(held)->tp_traverse(held, visit_buffers, &inner);
        one->failed |= inner.failed;
    }
    return 0;
}

static PyObject *
at(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects;
    Py_buffer addresses;
    if (!PyArg_ParseTuple(args, "O!y*:at", &PyList_Type, &objects, &addresses)) {
        return NULL;
    }
    set_t wanted = {0};
    PyObject *found = PyList_New(0);
    bool ready = found != NULL && set_of(&wanted, &addresses);
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(objects); i++) {
        PyObject *item = PyList_GET_ITEM(objects, i);
        ready = !contains(&wanted, (uintptr_t)item) || PyList_Append(found, item) == 0;
    }
    free(wanted.slots);
    PyBuffer_Release(&addresses);
    if (!ready) {
        Py_CLEAR(found);
    }
    return found;
}

static PyObject *
pointing_at(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects, *never;
    Py_buffer addresses, types;
    if (!PyArg_ParseTuple(args, "O!y*y*O!:pointing_at", &PyList_Type, &objects, &addresses,
                          &types, &PyType_Type, &never)) {
        return NULL;
    }
    set_t wanted = {0}, owners = {0}, seen = {0};
    buffers_t one = {&wanted, &owners, &seen, PyList_New(0), 0, false};
    bool ready = one.found != NULL && set_of(&wanted, &addresses) && set_of(&owners, &types);
    if (ready && !make_set(&seen, (size_t)PyList_GET_SIZE(objects))) {
        PyErr_NoMemory();
        ready = false;
    }
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(objects); i++) {
        PyObject *item = PyList_GET_ITEM(objects, i);
        look_at_buffers(item, &one);
        if (Py_TYPE(item)->tp_traverse != NULL && !Py_IS_TYPE(item, (PyTypeObject *)never)) {
            Py_TYPE(item)->tp_traverse(item, visit_buffers, &one);
        }
        ready = !one.failed;
    }
    free(wanted.slots);
    free(owners.slots);
    free(seen.slots);
    PyBuffer_Release(&addresses);
    PyBuffer_Release(&types);
    if (!ready) {
        Py_CLEAR(one.found);
    }
    return one.found;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static PyObject *
tracked(void)
/* What the collector lists, the oldest generation first, and within each what came first; nobody
 * else may see it. As long as it lives nothing is to be made that the collector tracks: that can set
 * off a collection, whose finalizers and callbacks let other threads run, and these find their
 * unfinished tuples referred to by the list. */
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *all = NULL;
    int enabled = PyGC_Disable(); /* the second list must not set one off beside the first */
    for (int generation = OLDEST; gc != NULL && generation >= 0; generation--) {
        PyObject *part = PyObject_CallMethod(gc, "get_objects", "i", generation);
        if (part != NULL) {
            PyObject_GC_UnTrack(part); /* else the youngest would have the others in it */
        }
        if (all == NULL) {
            all = part;
        } else if (part != NULL) {
            Py_ssize_t end = PyList_GET_SIZE(all);
            int failed = PyList_SetSlice(all, end, end, part);
            Py_DECREF(part);
            part = failed ? NULL : all;
        }
        if (part == NULL) {
            Py_CLEAR(all);
            break;
        }
    }
    if (enabled) {
        PyGC_Enable();
    }
    Py_XDECREF(gc);
    return all;
}

static PyObject *
objects(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *result = PyList_New(0); /* first: see `tracked` */
    PyObject *all = result == NULL ? NULL : tracked();
    for (Py_ssize_t i = 0; all != NULL && result != NULL && i < PyList_GET_SIZE(all); i++) {
        PyObject *item = PyList_GET_ITEM(all, i);
        if (item != result && !may_be_unfinished(item) && PyList_Append(result, item) < 0) {
            Py_CLEAR(result);
        }
    }
    if (all == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(all);
    return result;
}

typedef struct {
    const set_t *wanted;
    set_t *found;
    bool meets;
} among_t;

static int
visit_among(PyObject *held, void *context)
{
    among_t *one = context;
    one->meets |= contains(one->wanted, (uintptr_t)held) || contains(one->found, (uintptr_t)held);
    return 0;
}

/* One round over all tuples and frozensets; whether it found more of them. */
static bool
find_more_tuples(PyObject *all, among_t *one)
{
    size_t before = one->found->used;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all); i++) {
        PyObject *item = PyList_GET_ITEM(all, i);
        if (may_be_unfinished(item)) {
            one->meets = false;
            Py_TYPE(item)->tp_traverse(item, visit_among, one);
            if (one->meets) {
                add(one->found, (uintptr_t)item);
            }
        }
    }
    return one->found->used > before;
}

static PyObject *
as_addresses(const set_t *set)
{
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(set->used * sizeof(uintptr_t)));
    uintptr_t *next = result == NULL ? NULL : (uintptr_t *)PyBytes_AS_STRING(result);
    for (size_t at = 0; next != NULL && at <= set->mask; at++) {
        if (set->slots[at] != 0) {
            *next++ = set->slots[at];
        }
    }
    return result;
}

static PyObject *
tuples_with(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer addresses;
    if (!PyArg_ParseTuple(args, "y*:tuples_with", &addresses)) {
        return NULL;
    }
    set_t wanted = {0}, found = {0};
    PyObject *all = tracked(), *result = NULL;
    if (all != NULL && set_of(&wanted, &addresses)) {
        size_t tuples = 0;
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all); i++) {
            tuples += may_be_unfinished(PyList_GET_ITEM(all, i));
        }
        if (make_set(&found, tuples)) {
            among_t one = {&wanted, &found, false};
            int rounds = 0;
            while (rounds <= DEEPEST && find_more_tuples(all, &one)) {
                rounds++;
            }
            result = as_addresses(&found);
        } else {
            PyErr_NoMemory();
        }
    }
    free(wanted.slots);
    free(found.slots);
    Py_XDECREF(all);
    PyBuffer_Release(&addresses);
    return result;
}

#define FEWEST_TYPES 4096 /* a power of two */

typedef struct {
    PyTypeObject *type;
    Py_ssize_t count;
} tally_t;

typedef struct { /* an open-addressing table of types; at most half full */
    tally_t *slots;
    size_t size;
    size_t used;
} tallies_t;

static tally_t *
tally_of(const tallies_t *tallies, PyTypeObject *type)
{
    size_t mask = tallies->size - 1;
    size_t at = (size_t)(((uintptr_t)type >> 4) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (tallies->slots[at].type != NULL && tallies->slots[at].type != type) {
        at = (at + 1) & mask;
    }
    return &tallies->slots[at];
}

static bool
make_room(tallies_t *tallies) /* for one type more */
{
    if (tallies->used < tallies->size / 2) {
        return true;
    }
    size_t size = tallies->size == 0 ? FEWEST_TYPES : tallies->size * 2;
    tallies_t larger = {calloc(size, sizeof *larger.slots), size, tallies->used};
    if (larger.slots == NULL) {
        return false;
    }
    for (size_t at = 0; at < tallies->size; at++) {
        if (tallies->slots[at].type != NULL) {
            *tally_of(&larger, tallies->slots[at].type) = tallies->slots[at];
        }
    }
    free(tallies->slots);
    *tallies = larger;
    return true;
}

/* No dict of types: their metaclasses may hash and compare them in Python, or not at all. */
static PyObject *
as_pairs(const tallies_t *tallies)
{
    PyObject *result = PyList_New(0);
    for (size_t at = 0; result != NULL && at < tallies->size; at++) {
        const tally_t *tally = &tallies->slots[at];
        if (tally->type != NULL) {
            PyObject *pair = Py_BuildValue("(On)", tally->type, tally->count);
            if (pair == NULL || PyList_Append(result, pair) < 0) {
                Py_CLEAR(result);
            }
            Py_XDECREF(pair);
        }
    }
    return result;
}

static PyObject *
count_types(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    PyObject *all = tracked(), *result = NULL;
    tallies_t tallies = {0};
    bool ready = all != NULL;
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(all); i++) {
        ready = make_room(&tallies);
        if (ready) {
            PyTypeObject *type = Py_TYPE(PyList_GET_ITEM(all, i));
            tally_t *tally = tally_of(&tallies, type);
            if (tally->type == NULL) {
                tallies.used++;
                tally->type = (PyTypeObject *)Py_NewRef(type);
            }
            tally->count++;
        }
    }
    Py_XDECREF(all);
    if (ready) {
        result = as_pairs(&tallies);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    for (size_t at = 0; at < tallies.size; at++) {
        Py_XDECREF(tallies.slots[at].type);
    }
    free(tallies.slots);
    return result;
}

static PyMethodDef functions[] = {
    {"objects", objects, METH_NOARGS,
     "All objects that the collector tracks, but for tuples and frozensets; the oldest generation\n"
     "comes first."},
    {"count_types", count_types, METH_NOARGS,
     "How many objects of each type the collector tracks: [(type, count)]."},
    {"holders", holders, METH_VARARGS,
     "holders(objects, addresses, never, tuples): those of the objects that refer to something at\n"
     "one of the addresses, and the tuples, frozensets and untracked dicts below them that do;\n"
     "objects of the type `never` are not asked. `tuples` may be the answer of tuples_with, if all\n"
     "that is looked for is tracked: nothing else is looked into then, which is much faster; else\n"
     "None."},
    {"tuples_with", tuples_with, METH_VARARGS,
     "tuples_with(addresses): the addresses of the tracked tuples and frozensets that refer to\n"
     "something at one of the addresses, or to another such tuple. What is untracked cannot refer\n"
     "to something tracked."},
    {"at", at, METH_VARARGS, "at(objects, addresses): the objects that lie at the addresses."},
    {"pointing_at", pointing_at, METH_VARARGS,
     "pointing_at(objects, addresses, types, never): the objects of the types, given by their\n"
     "addresses too, whose own struct begins with a pointer to one of the addresses, and what the\n"
     "objects refer to of the types that the collector does not know; objects of the type `never`\n"
     "are not asked."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_scan",
    .m_doc = "Passes over many objects at the speed of the collector; see heap.py for its face.",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__scan(void)
{
    return PyModuleDef_Init(&definition);
}

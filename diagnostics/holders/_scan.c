/* Passes over many objects at the speed of the collector: who refers to these, who lies at these
 * addresses, whose buffers are these.
 *
 * Every function takes a list of objects and addresses as machine words in bytes, and gives a list of
 * those objects that meet the question. It holds the GIL from end to end, so the caller asks for a
 * part of the heap at a time. Nothing is collected and no Python code runs.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MOST_WORDS 8 /* of an object's own struct, where the types in question have their buffers */
#define DEEPEST 4    /* untracked containers inside untracked containers */

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
    set_t *seen;      /* untracked containers that were looked into already */
    PyObject *found;  /* a list */
    int depth;
    bool meets;
    bool failed;
} visit_t;

static int visit(PyObject *held, void *context);

static bool
is_untracked_container(PyObject *item)
{
    return ((PyDict_CheckExact(item) && PyDict_GET_SIZE(item) > 0)
            || (PyTuple_CheckExact(item) && PyTuple_GET_SIZE(item) > 0))
           && !PyObject_GC_IsTracked(item);
}

static void
look_into(PyObject *holder, visit_t *outer)
{
    visit_t inner = {outer->wanted, outer->seen, outer->found, outer->depth + 1, false, false};
    Py_TYPE(holder)->tp_traverse(holder, visit, &inner);
    outer->failed |= inner.failed || (inner.meets && PyList_Append(outer->found, holder) < 0);
}

static int
visit(PyObject *held, void *context)
{
    visit_t *one = context;
    one->meets |= contains(one->wanted, (uintptr_t)held);
    /* The collector has let go of dicts and tuples that hold only strings and numbers; they are
     * found through whoever refers to them. Many objects may share one: it is looked into once. */
    if (one->depth < DEEPEST && is_untracked_container(held) && add(one->seen, (uintptr_t)held)) {
        look_into(held, one);
    }
    return 0;
}

static PyObject *
holders(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *objects, *never;
    Py_buffer addresses;
    if (!PyArg_ParseTuple(args, "O!y*O!:holders", &PyList_Type, &objects, &addresses, &PyType_Type,
                          &never)) {
        return NULL;
    }
    set_t wanted = {0}, seen = {0};
    PyObject *found = PyList_New(0);
    bool ready = found != NULL && set_of(&wanted, &addresses)
                 && make_set(&seen, (size_t)PyList_GET_SIZE(objects));
    if (ready) {
        visit_t outer = {&wanted, &seen, found, -1, false, false};
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
    free(seen.slots);
    PyBuffer_Release(&addresses);
    if (!ready) {
        Py_CLEAR(found);
    }
    return found;
}

/* ---- Who lies there, and whose buffers are these --------------------------------------------- */

typedef struct {
    const set_t *wanted;
    PyObject *types; /* a frozenset; of others nobody knows where their buffers are */
    PyObject *found; /* a list */
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
    if (PySet_Contains(one->types, (PyObject *)Py_TYPE(item)) == 1
        && points_there(item, one->wanted)) {
        one->failed |= PyList_Append(one->found, item) < 0;
    }
}

static int
visit_buffers(PyObject *held, void *context)
{
    if (!PyObject_GC_IsTracked(held)) { /* the others come by themselves */
        look_at_buffers(held, context);
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
    PyObject *objects, *types, *never;
    Py_buffer addresses;
    if (!PyArg_ParseTuple(args, "O!y*O!O!:pointing_at", &PyList_Type, &objects, &addresses,
                          &PyFrozenSet_Type, &types, &PyType_Type, &never)) {
        return NULL;
    }
    set_t wanted = {0};
    buffers_t one = {&wanted, types, PyList_New(0), false};
    bool ready = one.found != NULL && set_of(&wanted, &addresses);
    for (Py_ssize_t i = 0; ready && i < PyList_GET_SIZE(objects); i++) {
        PyObject *item = PyList_GET_ITEM(objects, i);
        look_at_buffers(item, &one);
        if (Py_TYPE(item)->tp_traverse != NULL && !Py_IS_TYPE(item, (PyTypeObject *)never)) {
            Py_TYPE(item)->tp_traverse(item, visit_buffers, &one);
        }
        ready = !one.failed;
    }
    free(wanted.slots);
    PyBuffer_Release(&addresses);
    if (!ready) {
        Py_CLEAR(one.found);
    }
    return one.found;
}

static PyMethodDef functions[] = {
    {"holders", holders, METH_VARARGS,
     "holders(objects, addresses, never): those of the objects that refer to something at one of\n"
     "the addresses, and the untracked dicts and tuples below them that do; objects of the type\n"
     "`never` are not asked."},
    {"at", at, METH_VARARGS, "at(objects, addresses): the objects that lie at the addresses."},
    {"pointing_at", pointing_at, METH_VARARGS,
     "pointing_at(objects, addresses, types, never): the objects of the types whose own struct\n"
     "begins with a pointer to one of the addresses, and what the objects refer to of the types\n"
     "that the collector does not know; objects of the type `never` are not asked."},
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

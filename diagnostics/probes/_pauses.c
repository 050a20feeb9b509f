/* The collector's pauses, summed where they happen: the gc callback of the collector probe.
 *
 * A loader that makes many containers is collected a thousand times a second, so a callback in
 * Python costs as much as the collections themselves. This one runs no Python code at all, which
 * also means that a Ctrl-C that came during a collection is not raised, and lost, in here.
 *
 * The GIL guards everything: collections exclude each other, and `drain` keeps it.
 */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "_arrays.h"

#define UNKNOWN INT64_MIN /* the heap's size, where nobody counts it */
#define OLDEST 2

typedef struct {
    int64_t start_ns, pause_ns;
    int64_t heap_before, heap_after;
    int64_t collected, uncollectable;
    int64_t unit;
    unsigned long thread;
    int generation;
} event_t;

typedef struct { /* the short pauses of one generation in one thread */
    unsigned long thread;
    int generation;
    int64_t count;
    int64_t total_ns, longest_ns;
    int64_t collected, uncollectable;
    int64_t freed; /* UNKNOWN where one of them is */
} sum_t;

typedef struct {
    PyObject_HEAD
    PyObject *unit_variable;
    PyObject *live_bytes; /* a callable, or None */
    PyObject *words[3];   /* the keys of what the collector tells */
    int64_t zero_ns;
    int64_t long_ns;
    bool is_open; /* a collection has begun */
    int64_t start_ns;
    int64_t heap_before;
    int64_t cost_ns;
    Py_ssize_t missed;
    ARRAY(event_t) events;
    ARRAY(sum_t) sums;
} pauses_t;

enum { GENERATION, COLLECTED, UNCOLLECTABLE };
static const char *const words[] = {"generation", "collected", "uncollectable"};

static int64_t
now_ns(const pauses_t *self)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* what time.monotonic_ns() reads */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec - self->zero_ns;
}

static bool
read_heap(const pauses_t *self, int64_t *bytes)
{
    *bytes = UNKNOWN;
    if (self->live_bytes == Py_None) {
        return true;
    }
    PyObject *told = PyObject_CallNoArgs(self->live_bytes);
    if (told != NULL && told != Py_None) {
        *bytes = PyLong_AsLongLong(told);
    }
    Py_XDECREF(told);
    return !PyErr_Occurred();
}

static bool
read_unit(const pauses_t *self, int64_t *unit)
{
    *unit = 0;
    PyObject *value = NULL;
    if (PyContextVar_Get(self->unit_variable, NULL, &value) < 0) {
        return false;
    }
    if (value != NULL && PyLong_Check(value)) {
        *unit = PyLong_AsLongLong(value);
    }
    Py_XDECREF(value);
    return !PyErr_Occurred();
}

static bool
read_word(const pauses_t *self, PyObject *info, int which, int64_t *number)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemWithError(info, self->words[which]) : NULL;
    if (value == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_SetObject(PyExc_KeyError, self->words[which]);
        }
        return false;
    }
    *number = PyLong_AsLongLong(value);
    return !PyErr_Occurred();
}

static sum_t *
sum_of(pauses_t *self, unsigned long thread, int generation)
{
    for (size_t i = 0; i < self->sums.count; i++) {
        sum_t *sum = &self->sums.items[i];
        if (sum->thread == thread && sum->generation == generation) {
            return sum;
        }
    }
    if (!ROOM(self->sums)) {
        return NULL;
    }
    sum_t *sum = &self->sums.items[self->sums.count++];
    *sum = (sum_t){.thread = thread, .generation = generation};
    return sum;
}

static bool
note_event(pauses_t *self, event_t event)
{
    if (!read_unit(self, &event.unit)) {
        return false;
    }
    if (!ROOM(self->events)) {
        self->missed++;
        return true;
    }
    self->events.items[self->events.count++] = event;
    return true;
}

static void
note_sum(pauses_t *self, const event_t *event)
{
    sum_t *sum = sum_of(self, event->thread, event->generation);
    if (sum == NULL) {
        self->missed++;
        return;
    }
    sum->count++;
    sum->total_ns += event->pause_ns;
    if (event->pause_ns > sum->longest_ns) {
        sum->longest_ns = event->pause_ns;
    }
    sum->collected += event->collected;
    sum->uncollectable += event->uncollectable;
    if (event->heap_before == UNKNOWN || event->heap_after == UNKNOWN) {
        sum->freed = UNKNOWN;
    } else if (sum->freed != UNKNOWN) {
        sum->freed += event->heap_before - event->heap_after;
    }
}

static bool
collection_ends(pauses_t *self, PyObject *info, int64_t now)
{
    if (!self->is_open) {
        self->missed++; /* the probe was started in the middle of this one */
        return true;
    }
    self->is_open = false;
    event_t event = {
        .start_ns = self->start_ns,
        .pause_ns = now - self->start_ns,
        .heap_before = self->heap_before,
        .thread = PyThread_get_thread_ident(),
    };
    int64_t generation;
    if (!read_word(self, info, GENERATION, &generation)
        || !read_word(self, info, COLLECTED, &event.collected)
        || !read_word(self, info, UNCOLLECTABLE, &event.uncollectable)
        || !read_heap(self, &event.heap_after)) {
        return false;
    }
    event.generation = (int)generation;
    if (event.generation >= OLDEST || event.pause_ns > self->long_ns) {
        return note_event(self, event);
    }
    note_sum(self, &event);
    return true;
}

static PyObject *
call(PyObject *object, PyObject *args, PyObject *Py_UNUSED(keywords))
{
    pauses_t *self = (pauses_t *)object;
    int64_t now = now_ns(self);
    PyObject *phase, *info;
    if (!PyArg_ParseTuple(args, "UO:Pauses", &phase, &info)) {
        return NULL;
    }
    if (PyUnicode_CompareWithASCIIString(phase, "start") == 0) {
        if (!read_heap(self, &self->heap_before)) {
            return NULL;
        }
        self->is_open = true;
        self->start_ns = now;
    } else if (!collection_ends(self, info, now)) {
        return NULL;
    }
    self->cost_ns += now_ns(self) - now;
    Py_RETURN_NONE;
}

static PyObject *
number_or_none(int64_t number)
{
    return number == UNKNOWN ? Py_NewRef(Py_None) : PyLong_FromLongLong(number);
}

static PyObject *
event_row(const event_t *event)
{
    return Py_BuildValue("(LLNNiLLkL)", (long long)event->start_ns, (long long)event->pause_ns,
                         number_or_none(event->heap_before), number_or_none(event->heap_after),
                         event->generation, (long long)event->collected,
                         (long long)event->uncollectable, event->thread, (long long)event->unit);
}

static PyObject *
sum_row(const sum_t *sum)
{
    return Py_BuildValue("(kiLLLLLN)", sum->thread, sum->generation, (long long)sum->count,
                         (long long)sum->total_ns, (long long)sum->longest_ns,
                         (long long)sum->collected, (long long)sum->uncollectable,
                         number_or_none(sum->freed));
}

/* Making the rows can set off a collection, which calls back: they are made from what was taken. */
#define ROWS(rows, taken, row_of)                                                                 \
    for (size_t i = 0; (rows) != NULL && i < (taken).count; i++) {                                \
        PyObject *row = row_of(&(taken).items[i]);                                                \
        if (row == NULL || PyList_Append(rows, row) < 0) {                                        \
            Py_CLEAR(rows);                                                                       \
        }                                                                                         \
        Py_XDECREF(row);                                                                          \
    }                                                                                             \
    free((taken).items)

static PyObject *
drain(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    pauses_t *self = (pauses_t *)object;
    __typeof__(self->events) events = self->events;
    __typeof__(self->sums) sums = self->sums;
    memset(&self->events, 0, sizeof self->events);
    memset(&self->sums, 0, sizeof self->sums);
    PyObject *event_rows = PyList_New(0), *sum_rows = PyList_New(0);
    ROWS(event_rows, events, event_row);
    ROWS(sum_rows, sums, sum_row);
    if (event_rows == NULL || sum_rows == NULL) {
        Py_XDECREF(event_rows);
        Py_XDECREF(sum_rows);
        return NULL;
    }
    return Py_BuildValue("(NN)", event_rows, sum_rows);
}

static PyObject *
create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"unit_variable", "live_bytes", "zero_ns", "long_ns", NULL};
    PyObject *variable, *live_bytes;
    long long zero_ns, long_ns;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "O!OLL:Pauses", names, &PyContextVar_Type,
                                     &variable, &live_bytes, &zero_ns, &long_ns)) {
        return NULL;
    }
    pauses_t *self = (pauses_t *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->unit_variable = Py_NewRef(variable);
    self->live_bytes = Py_NewRef(live_bytes);
    self->zero_ns = zero_ns;
    self->long_ns = long_ns;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(words); i++) {
        self->words[i] = PyUnicode_InternFromString(words[i]);
        if (self->words[i] == NULL) {
            Py_DECREF(self);
            return NULL;
        }
    }
    return (PyObject *)self;
}

static void
destroy(PyObject *object)
{
    pauses_t *self = (pauses_t *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->unit_variable);
    Py_XDECREF(self->live_bytes);
    for (size_t i = 0; i < Py_ARRAY_LENGTH(words); i++) {
        Py_XDECREF(self->words[i]);
    }
    DROP_ARRAY(self->events);
    DROP_ARRAY(self->sums);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *
cost_ns(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromLongLong(((pauses_t *)object)->cost_ns);
}

static PyObject *
missed(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromSsize_t(((pauses_t *)object)->missed);
}

static PyGetSetDef attributes[] = {
    {"cost_ns", cost_ns, NULL, "Nanoseconds spent in here.", NULL},
    {"missed", missed, NULL, "Collections that could not be taken down.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef methods[] = {
    {"drain", drain, METH_NOARGS,
     "What came since the last call: events (start_ns, pause_ns, heap_before, heap_after,\n"
     "generation, collected, uncollectable, thread, unit), and sums (thread, generation, count,\n"
     "total_ns, longest_ns, collected, uncollectable, freed)."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot type_slots[] = {
    {Py_tp_doc, "Pauses(unit_variable, live_bytes, zero_ns, long_ns): a callback for gc.callbacks."},
    {Py_tp_new, create},
    {Py_tp_dealloc, destroy},
    {Py_tp_call, call},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, NULL},
};

static PyType_Spec type_spec = {
    .name = "diagnostics.probes._pauses.Pauses",
    .basicsize = sizeof(pauses_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = type_slots,
};

static int
execute(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &type_spec, NULL);
    if (type == NULL) {
        return -1;
    }
    int failed = PyModule_AddObjectRef(module, "Pauses", type);
    Py_DECREF(type);
    return failed;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_pauses",
    .m_doc = "A gc callback without Python code; see pauses.py for its face.",
    .m_slots = slots,
};

PyMODINIT_FUNC
PyInit__pauses(void)
{
    return PyModuleDef_Init(&definition);
}

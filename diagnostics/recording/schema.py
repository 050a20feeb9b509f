"""The file format: tables, type mark and version."""

from __future__ import annotations

APPLICATION_ID = 0x50383752  # "P87R"
VERSION = 2

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;  -- values are JSON

CREATE TABLE units (
    "index" INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER,
    status TEXT NOT NULL,
    error_type TEXT,
    error_message TEXT,
    bytes INTEGER NOT NULL,
    characters INTEGER NOT NULL,
    thread TEXT NOT NULL
);
CREATE INDEX units_by_end ON units (end_ns);

CREATE TABLE unit_peaks (
    "index" INTEGER PRIMARY KEY,
    rss_start INTEGER NOT NULL,
    rss_end INTEGER NOT NULL,
    rss_peak INTEGER NOT NULL,
    method TEXT NOT NULL
);

CREATE TABLE unit_heaps (
    "index" INTEGER PRIMARY KEY,
    born INTEGER NOT NULL,
    peak INTEGER NOT NULL
);

CREATE TABLE process (
    t_ns INTEGER PRIMARY KEY,
    rss INTEGER NOT NULL,
    uss INTEGER,
    pss INTEGER,
    minor_faults INTEGER NOT NULL,
    major_faults INTEGER NOT NULL,
    threads INTEGER NOT NULL,
    cpu_ns INTEGER NOT NULL
);

CREATE TABLE heap_totals (
    t_ns INTEGER PRIMARY KEY,
    bytes INTEGER NOT NULL,
    engine_bytes INTEGER NOT NULL
);

CREATE TABLE gc_events (
    t_ns INTEGER NOT NULL,
    pause_ns INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    collected INTEGER NOT NULL,
    uncollectable INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    own INTEGER NOT NULL,
    heap_before INTEGER, -- since version 2
    heap_after INTEGER -- since version 2
);
CREATE INDEX gc_events_by_time ON gc_events (t_ns);

CREATE TABLE gc_summaries (
    t_ns INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    count INTEGER NOT NULL,
    pause_total_ns INTEGER NOT NULL,
    pause_max_ns INTEGER NOT NULL,
    collected INTEGER NOT NULL,
    uncollectable INTEGER NOT NULL,
    freed INTEGER, -- since version 2
    PRIMARY KEY (t_ns, generation)
) WITHOUT ROWID;

CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE);
CREATE TABLE sites (
    id INTEGER PRIMARY KEY,
    parent INTEGER,
    file INTEGER NOT NULL REFERENCES files (id),
    line INTEGER NOT NULL,
    function TEXT NOT NULL
);
CREATE TABLE source (
    file INTEGER NOT NULL REFERENCES files (id),
    line INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (file, line)
) WITHOUT ROWID;
CREATE TABLE types (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);

CREATE TABLE mappings (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    name TEXT NOT NULL
);

-- Large series: what changed since the frame before, and now and then all of it (key = 1).
CREATE TABLE frames (
    id INTEGER PRIMARY KEY,
    series TEXT NOT NULL,
    t_ns INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    key INTEGER NOT NULL,
    payload BLOB NOT NULL
);
CREATE INDEX frames_by_time ON frames (series, t_ns);
CREATE INDEX key_frames_by_time ON frames (series, t_ns) WHERE key;

CREATE TABLE line_profile (
    function TEXT NOT NULL,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    source TEXT NOT NULL,
    rss INTEGER,
    increment INTEGER,
    hits INTEGER,
    PRIMARY KEY (function, file, line)
) WITHOUT ROWID;

CREATE TABLE log (
    t_ns INTEGER NOT NULL,
    level TEXT NOT NULL,
    source TEXT NOT NULL,
    message TEXT NOT NULL
);

CREATE TABLE probes (
    name TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    detail TEXT NOT NULL,
    cost_ns INTEGER NOT NULL,
    dropped INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE outcome (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    t_ns INTEGER NOT NULL,
    last_unit INTEGER NOT NULL,
    exit_status INTEGER,
    signal INTEGER,
    error_type TEXT,
    error_message TEXT,
    traceback TEXT
);

-- Since version 2: where the memory went, and who held it.
CREATE TABLE ledger (
    t_ns INTEGER PRIMARY KEY,
    rss INTEGER NOT NULL,
    anonymous INTEGER NOT NULL,
    file_backed INTEGER NOT NULL,
    shared INTEGER NOT NULL,
    python INTEGER,
    python_small INTEGER,
    arenas INTEGER,
    native_used INTEGER,
    native_free INTEGER,
    children INTEGER,
    group_anonymous INTEGER,
    group_cache INTEGER
);

CREATE TABLE settlement (
    position INTEGER PRIMARY KEY,
    step TEXT NOT NULL,
    t_ns INTEGER NOT NULL,
    rss_before INTEGER NOT NULL,
    rss_after INTEGER NOT NULL,
    python_before INTEGER,
    python_after INTEGER,
    objects INTEGER NOT NULL,
    uncollectable INTEGER NOT NULL
);

CREATE TABLE captures (
    id INTEGER PRIMARY KEY,
    t_ns INTEGER NOT NULL,
    unit INTEGER NOT NULL,
    reason TEXT NOT NULL,
    duration_ns INTEGER NOT NULL,
    objects INTEGER NOT NULL,
    complete INTEGER NOT NULL,
    note TEXT NOT NULL
);
CREATE TABLE suspects (
    capture INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    site INTEGER,
    type TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    first_unit INTEGER NOT NULL,
    last_unit INTEGER NOT NULL,
    units INTEGER NOT NULL,
    steadiness REAL NOT NULL,
    PRIMARY KEY (capture, rank)
) WITHOUT ROWID;
CREATE TABLE held_objects (
    capture INTEGER NOT NULL,
    id INTEGER NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    size INTEGER NOT NULL,
    count INTEGER NOT NULL,
    root TEXT NOT NULL,
    unit INTEGER,
    site INTEGER,
    file TEXT NOT NULL,
    line INTEGER NOT NULL,
    PRIMARY KEY (capture, id)
) WITHOUT ROWID;
CREATE TABLE object_references (
    capture INTEGER NOT NULL,
    holder INTEGER NOT NULL,
    held INTEGER NOT NULL,
    label TEXT NOT NULL,
    PRIMARY KEY (capture, holder, held, label)
) WITHOUT ROWID;
CREATE TABLE chains (
    capture INTEGER NOT NULL,
    suspect INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    position INTEGER NOT NULL,
    object INTEGER NOT NULL,
    count INTEGER NOT NULL,
    likely_wrong INTEGER NOT NULL,
    PRIMARY KEY (capture, suspect, chain, position)
) WITHOUT ROWID;
"""

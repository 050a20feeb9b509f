"""The Quillmere Water Board, which does not exist: its year in figures, and the documents on it."""

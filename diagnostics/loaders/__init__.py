"""Documents become pages with text, lazily: built-in formats, installed loaders, people's own."""

from diagnostics.loaders.base import Loader, LoadOptions, OpenDocument, Page
from diagnostics.loaders.registry import all_loaders, broken_loaders, default_loader, find_loader

__all__ = [
    "LoadOptions",
    "Loader",
    "OpenDocument",
    "Page",
    "all_loaders",
    "broken_loaders",
    "default_loader",
    "find_loader",
]

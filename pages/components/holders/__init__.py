"""The graph of references on screen: who holds an object, to be explored by click or keyboard."""

from pages.components.holders.component import holders

__all__ = ["holders"]

"""Who holds what: suspects, their living objects, and the references that keep them alive."""

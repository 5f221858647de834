"""Shipped fakes with real conditional semantics, and the fault plan."""

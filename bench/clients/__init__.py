"""Ottla's client beside other clients, all of them on one Ottla broker."""

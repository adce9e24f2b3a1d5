"""The program under test."""


def price(pieces: int) -> float:
    """Return the price of so many pieces, in euros: there is a discount from 1001 pieces on."""
    return pieces * (0.80 if pieces > 1000 else 0.90)

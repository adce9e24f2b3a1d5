"""Write orders.csv: 100 000 orders of 4000 customers in a year."""

from pathlib import Path

PRODUCTS = ("bolt", "bracket", "hinge", "nail", "nut", "plate", "rivet", "screw")


def main() -> None:
    lines = ["order,month,customer,product,pieces,euros\n"]
    for order in range(1, 100_001):
        mixed = order * 2_654_435_761 % 2**32
        month, customer = 1 + mixed % 12, mixed // 12 % 4000
        pieces = 1 + mixed // 48_000 % 90
        product = PRODUCTS[mixed // 7 % 8]
        euros = pieces * (3 + mixed // 7 % 8)
        lines.append(f"{order},{month},C{customer:04},{product},{pieces},{euros}\n")
    Path("orders.csv").write_text("".join(lines))


if __name__ == "__main__":
    main()

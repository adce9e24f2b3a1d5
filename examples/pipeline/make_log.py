"""Write access.log.gz: the requests of a web server in a day, 200 000 lines."""

import gzip

PAGES = ("/", "/basket", "/help", "/login", "/products", "/search")


def main() -> None:
    with gzip.open("access.log.gz", "wt") as log:
        for number in range(200_000):
            mixed = number * 2_654_435_761 % 2**32
            page = PAGES[mixed // 7 % 6]
            failed = mixed // 1000 % 400 < (5 if page == "/basket" else 1)
            time = f"22/Nov/2026:{number // 8400:02}:{number // 140 % 60:02}:{number % 60:02}"
            request = f'10.0.{mixed % 200}.{mixed // 200 % 250} - - [{time} +0000] "GET {page} HTTP/1.1"'
            log.write(f"{request} {500 if failed else 200} {200 + mixed % 9000}\n")


if __name__ == "__main__":
    main()

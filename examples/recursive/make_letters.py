"""Write letters.txt: 12 000 letters to an office, 4 MB. Some complain, each in its own words."""

from pathlib import Path

COMPLAINTS = (
    "The heating has been cold since Monday.",
    "Water comes through the ceiling of the kitchen.",
    "Nobody answers your telephone.",
    "The lift has stopped again, and I live on the ninth floor.",
)
OTHERS = (
    "Thank you for the new key. It fits.",
    "Please send the plan of the cellar to my new address.",
    "I shall be away in August; a neighbour waters the plants.",
    "The invoice for the third quarter is paid.",
    "We have had the windows painted, as agreed.",
)
GREETING = (
    "Dear Sir or Madam,\n\nI write to you about the house in Mill Lane, where I have lived for many years, "
    "and with pleasure.\nI hope that this letter finds you well. The weather here is as it should be.\n"
)


def letter(number: int) -> str:
    if number % 40 == 7:
        said = COMPLAINTS[(number // 40) ** 2 % len(COMPLAINTS)]
    else:
        said = OTHERS[number % len(OTHERS)]
    return f"Letter {number} {GREETING}{said}\n\nYours faithfully, tenant {number % 700}\n\n"


def main() -> None:
    Path("letters.txt").write_text("".join(map(letter, range(1, 12_001))))


if __name__ == "__main__":
    main()

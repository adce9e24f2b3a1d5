"""The scripted model of this example: it acts on what it was shown."""

from fdstore.testing import Request, Turn, call, element, say


def script(request: Request) -> Turn:
    match request.turn_number:
        case 0:
            return call(
                "ask_person", question="Which machines get version 41?", choices=["test", "half", "all"]
            )
        case 1:
            machines = element(request.last_text(), "person_answer").body
            return call("deploy", version=41, machines=machines)
    return say(f"Done: {request.last_text().splitlines()[-1]}.")

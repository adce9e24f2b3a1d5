"""The scripted model of this example: it acts on what it was shown."""

import re
import threading

from fdstore.testing import Request, Turn, call, say

STEPS = {
    "backend": "Migrate the database before the servers are restarted.",
    "frontend": "Switch the new basket on for one user in ten.",
    "operations": "Watch the error rate for an hour.",
}
all_have_read = threading.Barrier(len(STEPS))


def script(request: Request) -> Turn:
    found = re.search(r"You are the (\w+) team", request.system)
    team = found[1] if found else "backend"
    shown = request.last_text()
    if request.turn_number == 0 or 'type="conflict"' in shown:
        return call("read_plan")
    if f"## {team}\n\nto do" not in shown:
        return say(shown)  # "written", or an error that cannot be mended
    if request.turn_number == 1:
        all_have_read.wait(60)  # the first writes come together
    return call("write_plan", text=shown.replace(f"## {team}\n\nto do", f"## {team}\n\n{STEPS[team]}"))

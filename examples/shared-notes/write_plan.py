"""Three agents write one document at the same time, and none overwrites what another wrote."""

from concurrent.futures import ThreadPoolExecutor

import anthropic

import fdstore
from fdstore.errors import Conflict

TEAMS = ("backend", "frontend", "operations")
PLAN = "# Release plan\n" + "".join(f"\n## {team}\n\nto do\n" for team in TEAMS)
SYSTEM = """
You are the {team} team. Read the plan, replace "to do" in your section by one step, leave the rest as it is,
and write the whole plan. If another team has changed it meanwhile, read it again and write your step into it.
"""


class SharedPlan:
    """The tools of one agent: it writes only what is based on the plan as it is."""

    def __init__(self, board: fdstore.Process) -> None:
        self.board = board
        self.last_read: fdstore.Descriptor | None = None
        self.conflicts = 0

    def read_plan(self) -> str:
        """Read the plan."""
        # before the text: if the plan is replaced in between, the write fails, and no change is lost
        self.last_read = self.board.find("plan.md")
        return self.board.read("name:plan.md", read_all=True).text

    def write_plan(self, text: str) -> str:
        """Replace the plan. Fails if it was changed since you read it."""
        try:
            self.board.put("plan.md", text, expect=self.last_read)
        except Conflict:
            self.conflicts += 1
            raise  # the model sees the error and what to do
        return "written"


def run_agent(board: fdstore.Process, team: str) -> int:
    """Let one agent write its section; return how often it came too late."""
    plan = SharedPlan(board)
    tools = fdstore.Toolset(board.child(), python=[plan.read_plan, plan.write_plan])
    agent = anthropic.Anthropic().beta.messages.tool_runner(
        model="claude-sonnet-5-5",
        max_tokens=4096,
        system=SYSTEM.format(team=team),
        tools=tools.runnable(),
        messages=[{"role": "user", "content": "Write the step of your team for the release of Monday."}],
    )
    agent.until_done()
    return plan.conflicts


def main() -> None:
    board = fdstore.connect().process()
    board.put("plan.md", PLAN)
    with ThreadPoolExecutor() as pool:
        conflicts = list(pool.map(run_agent, [board] * len(TEAMS), TEAMS))
    print(board.read("name:plan.md", read_all=True).text)
    print(f"{len(TEAMS)} agents; writes refused because another was first: {sum(conflicts)}")


if __name__ == "__main__":
    main()

"""The verbs gc and doctor: maintain a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fdstore.cli import output
from fdstore.cli.session import CliSession, verb
from fdstore.cli.tables import Column, Table, key, reason
from fdstore.text.quantities import format_count, moment

if TYPE_CHECKING:
    from fdstore.client import Store
    from fdstore.model.records import Unreadable
    from fdstore.store.doctor.audit import Damage
    from fdstore.store.keys import TreeKeys
    from fdstore.store.trees.collect_trees import Collected

COLLECTED = Table((key("TREE"), Column("WHAT"), reason("WHY")))


@verb
@click.option("--dry-run", is_flag=True, help="Only print the trees that would be removed.")
def gc(session: CliSession, dry_run: bool) -> None:
    """Remove trees that were not used for their retention (default: 7 days).

    Of a store with cold contents it also deletes the objects that no content needs any more, and looks for
    those that a crash or a restored backup has left.

    A tree with a ready, running or waiting process is kept, and so is one that is damaged or of a newer
    format: standard error names it, or with --json a last document, `unreadable`. Workers do the same
    periodically.
    """
    from fdstore.errors import SKIPPABLE, TreeOutOfReach
    from fdstore.store.record_format import unreadable
    from fdstore.store.tree_facts import within_reach
    from fdstore.store.trees.collect_trees import due_trees

    found: list[Collected] = []
    unreached: list[TreeOutOfReach] = []
    with session.store(use="look" if dry_run else "remove") as store:
        trees = store.run(within_reach(store.run(due_trees(store.prefix)), unreached))
        damaged = [unreadable(each) for each in unreached]
        for tree in trees:
            try:
                found.append(_collected(store, tree, dry_run))
            except SKIPPABLE as error:
                damaged.append(unreadable(error))
        objects = _objects(store, dry_run, damaged)
    if session.as_json:
        output.documents(found)
        if objects:
            output.document({"objects": objects, "deleted": not dry_run})
    elif not found:
        output.line("nothing to remove" if damaged else "nothing to remove: no tree is past its retention")
    else:
        rows = [[item.tree, *_explained(item, dry_run)] for item in found]
        output.table(COLLECTED, rows)
    if objects and not session.as_json:
        done = "would delete" if dry_run else "deleted"
        output.line(f"{done} {format_count(objects, 'object')} that no content needs")
    output.report_unreadable(damaged, as_json=session.as_json)


def _objects(store: Store, dry_run: bool, damaged: list[Unreadable]) -> int:
    """Delete objects that no content needs, or only look for those. Return how many; lists that cannot be
    read are added to `damaged`. Raises `ObjectStoreUnavailable`."""
    from fdstore.errors import DamagedRecord
    from fdstore.store.cold.comparing import find_garbage, list_garbage
    from fdstore.store.cold.unneeded import count_due, delete_unneeded
    from fdstore.store.objects.settings import read_settings
    from fdstore.store.record_format import unreadable

    settings = store.run(read_settings(store.prefix))
    if settings.url is None:
        return 0
    garbage = list(find_garbage(store))
    if dry_run:
        return len(garbage) + store.run(count_due(store.prefix, damaged))
    for each in garbage:
        store.run(list_garbage(each))
    deleted = delete_unneeded(store, settings.url)
    if isinstance(deleted.error, DamagedRecord):
        damaged.append(unreadable(deleted.error))
    elif deleted.error is not None:
        raise deleted.error
    return deleted.objects


def _collected(store: Store, tree: TreeKeys, dry_run: bool) -> Collected:
    from fdstore.store.trees.collect_trees import Collected, collect_tree

    seen = store.run(collect_tree(tree, dry_run=True))
    if dry_run:
        return seen
    done = store.run(collect_tree(tree))
    # the size of a tree is known only before its removal
    return Collected(done.tree, done.outcome, seen.detail) if done.outcome == "gone" else done


def _explained(item: Collected, dry_run: bool) -> tuple[str, str]:
    match item.outcome:
        case "due":
            return "would be removed", item.detail
        case "gone" if dry_run:
            return "would be removed", "only its name is left"
        case "gone":
            return "removed", item.detail or "only its name was left"
        case "held":
            return "stays", f"{item.detail} has not ended"
        case _:
            return (
                "stays",
                "for ever" if item.detail == "inf" else f"in use until {moment(float(item.detail))}",
            )


@verb
@click.option("--deep", is_flag=True, help="Also read all stored data and report damage.")
@click.option(
    "--accept", "accepted", metavar="PROBLEM", help="Accept a problem of this version of the server."
)
@click.option("--reason", metavar="TEXT", help="With --accept: why it is none here.")
@click.option("--withdraw", "withdrawn", metavar="PROBLEM", help="Accept a problem no longer.")
@click.pass_context
def doctor(
    context: click.Context,
    session: CliSession,
    deep: bool,
    accepted: str | None,
    reason: str | None,
    withdrawn: str | None,
) -> None:
    """Check Python, packages, the data directory, the store and its workers, and advise on problems.

    A problem can lose content or expose it: a network without a password or TLS, an eviction policy, a
    configuration that loads a torn append-only file, no append-only file. Or work stands still: processes
    wait and no worker takes them, or a worker vanished. A note suggests an improvement.
    With --deep all trees are read, to check texts against their index and totals, tables, counters, and keys
    that no record names. That takes about as long as reading all data; other clients can work meanwhile.

    Nothing is started or changed. The exit code is 1 if there is a problem or damage.

    A problem of the store that is none here, as an old version that the distribution has mended, can be
    accepted for everyone: it is a note then, until the server is of another version.

    \b
    fdstore doctor
    fdstore doctor --accept 'known flaws' --reason 'mended in Debian 5:7.0.15-1~deb12u6'
    """
    from fdstore.cli.doctor_checks import check_everything

    if (accepted is None) != (reason is None):
        raise click.UsageError("--accept and --reason belong together")
    if accepted is not None and reason is not None:
        _accept(session, accepted, reason)
    if withdrawn is not None:
        _withdraw(session, withdrawn)
    well = True
    for finding in check_everything(session):
        well = well and finding.ok
        if session.as_json:
            output.document(finding)
            continue
        advice = finding.advice if finding.note or not finding.ok else ""
        output.marked(*_marks(finding.ok, finding.note), f"{finding.subject}: {finding.said}", advice)
    if deep:
        well = _check_trees(session) and well
    if not well:
        context.exit(1)


def _accept(session: CliSession, problem: str, reason: str) -> None:
    """Accept a problem of the store. Raises `UsageError` for what is none."""
    from fdstore.store.doctor.accepted import accept
    from fdstore.store.doctor.check import examine
    from fdstore.wire.store_url import parse_store_url

    if not reason.strip():
        raise click.UsageError("--reason says why the problem is none here")
    with session.store(use="remove") as store:
        findings = store.run(examine(parse_store_url(store.url)))
        problems = [finding.subject for finding in findings if not finding.ok]
        if problem not in problems:
            listed = ", ".join(map(repr, problems)) or "none"
            raise click.UsageError(f"{problem!r} is no problem of this store; its problems: {listed}")
        store.run(accept(store.prefix, problem, reason.strip(), findings))


def _withdraw(session: CliSession, problem: str) -> None:
    from fdstore.store.doctor.accepted import withdraw

    with session.store(use="remove") as store:
        if not store.run(withdraw(store.prefix, problem)):
            raise click.UsageError(f"{problem!r} is not accepted")


def _marks(ok: bool, note: bool) -> tuple[str, str]:
    if not ok:
        return "PROBLEM", "bad"
    return ("note   ", "busy") if note else ("ok     ", "good")


def _check_trees(session: CliSession) -> bool:
    """Report damage in the trees of the store; return whether there is none."""
    from fdstore.store.doctor.audit import named_trees

    if session.chosen_url is None and not session.embedded_server().status().running:
        output.marked("ok     ", "good", "trees: the store is not running; the first command starts it")
        return True
    well = True
    with session.store(use="look") as store:
        trees = store.run(named_trees(store.prefix))
        for number, tree in enumerate(trees, 1):
            damaged = _check_tree(store, tree, f"{number} of {len(trees)}: {tree.tree}")
            for each in damaged:
                well = well and each.harmless
                _show_damage(session, each)
        well = _check_objects(session, store) and well
    if not session.as_json:
        count = len(trees)
        mark, style = ("ok     ", "good") if well else ("DAMAGED", "bad")
        output.marked(mark, style, f"trees: {count} {'was' if count == 1 else 'were'} read")
    return well


def _check_objects(session: CliSession, store: Store) -> bool:
    """Report objects that no content needs; return whether the object store could be asked, if there is
    one."""
    from fdstore.errors import InvalidArgument, ObjectStoreUnavailable
    from fdstore.store.cold.comparing import find_garbage
    from fdstore.store.doctor.audit_content import Damage

    try:
        found = list(find_garbage(store))
    except (InvalidArgument, ObjectStoreUnavailable) as error:
        advice = "correct it with: fdstore limits set cold URL; or look again when it answers"
        _show_damage(session, Damage(key=f"{store.prefix}:limits", said=str(error), advice=advice))
        return False
    if found:
        said = f"{format_count(len(found), 'object')} that no content needs, as {found[0].object.path}"
        damage = Damage(
            key=f"{store.prefix}:cold:trees", said=said, advice="delete them with: fdstore gc", harmless=True
        )
        _show_damage(session, damage)
    return True


def _check_tree(store: Store, tree: TreeKeys, label: str) -> list[Damage]:
    """Return the damage in a tree. Shows progress by bytes, or of many small contents by their number."""
    from fdstore.cli.progress import LARGE_BYTES, progress
    from fdstore.store.doctor.audit import check_tree, size_of

    size_bytes, contents = store.run(size_of(tree))
    if size_bytes is None or size_bytes >= LARGE_BYTES:
        with progress(label, size_bytes) as tell:
            return store.run(check_tree(tree, lambda read_bytes, _: tell(read_bytes) if tell else None))
    with progress(label, contents, "content") as tell:
        return store.run(check_tree(tree, lambda _, number: tell(number) if tell else None))


def _show_damage(session: CliSession, damage: Damage) -> None:
    if session.as_json:
        output.document(damage)
        return
    mark, style = ("note   ", "busy") if damage.harmless else ("DAMAGED", "bad")
    output.marked(mark, style, f"{damage.key}: {damage.said}", damage.advice)

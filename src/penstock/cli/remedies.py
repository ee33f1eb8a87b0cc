"""How the command line phrases a remedy: the command that does what the verb does."""

from __future__ import annotations

from penstock import shell
from penstock.errors import PenstockError, Remedy
from penstock.shell import filled

# Where the command line has more to say than a program: by the error's code and its remedy's verb.
# `{}` is what the remedy is called with, `{hint}` what the error itself says.
BY_CODE: dict[tuple[str, str], str] = {
    ("another_copy", ""): "--restart discards that copy and starts over",
    ("another_project", "store.rename"): "{hint}, and penstock db rename",
    ("backfill_needs_more", ""): "penstock backfill SOURCE --from DAY --to DAY",
    ("both_are_files", "store.backup"): "penstock db backup FILE, while it is in use",
    ("copy_differs", ""): "start over: penstock db copy … --restart",
    ("copy_origin_changed", ""): "stop whatever changes it, then start over:"
    " penstock db copy … --restart",
    ("copy_unfinished", "store.copy"): "wait for it, or run the same `penstock db copy` again:"
    " it continues where it stopped",
    ("cursor_further_on", ""): "a backfill fetches it; --force moves the checkpoint anyway",
    ("cursor_unfit", ""): "--force moves the checkpoint anyway",
    ("file_exists", ""): "--yes replaces it",
    (
        "golden_exists",
        "",
    ): "--add adds pages to it, --replace makes a new one; to approve what new code"
    " makes of its pages: penstock golden check --update",
    ("job_reads_nothing", ""): "penstock builder init writes a first job",
    ("no_database", "runs.start"): "penstock run makes it",
    ("no_filter", "rejects.list"): "name --source, --run or --id; penstock rejects list shows them",
    ("no_golden_corpus", ""): "`penstock golden record SOURCE` makes one from stored pages",
    ("no_page_of_source", ""): "penstock page URL shows what is stored of it",
    ("no_page_step", ""): "penstock run SOURCE --kind probe takes one item through the whole"
    " pipeline",
    ("no_project", ""): "`penstock init` makes a project; `--project DIR` names one",
    ("no_promoted_release", ""): "promote one: penstock release promote",
    ("no_release", ""): "make one: penstock release create --reason WHY",
    ("no_quiet_moment", "store.migrate"): "{hint}: penstock db migrate",
    ("no_source_can_run", ""): "penstock run --all --kind probe; penstock sources says why not",
    ("no_views", ""): "penstock db sql install makes them",
    ("nothing_to_redrive", "replays.commit"): "what a replay rejects counts when it is committed:"
    " penstock status names those that wait",
    ("onboarding_required", ""): "{hint}: penstock sources propose",
    (
        "other_release",
        "",
    ): "penstock release diff shows it; penstock release checkout brings the folder to the release",
    ("privileges_missing", "store.grants"): "{hint} (all of it: penstock db grants {})",
    (
        "promotion_needed",
        "",
    ): "{hint}: penstock release promote --from ENV --to ENV --reason WHY --yes",
    ("release_changed", ""): "somebody has changed the database; make the release again, and see"
    " `penstock audit verify`",
    ("replay_needs_more", ""): "penstock replay RUN",
    ("run_by_release", ""): "penstock up starts a worker for it; penstock cancel gives it up",
    ("run_differs", ""): "--new starts another run beside it",
    (
        "run_ended",
        "runs.continue_from",
    ): "to do what is left of it: penstock resume {} --from-checkpoint",
    (
        "run_may_move_it",
        "runs.cancel",
    ): "wait for it, or penstock cancel {}; --force moves it anyway",
    ("run_not_continued", "runs.retry"): "penstock retry {} --failed, or do it again",
    ("nothing_to_forget", "records.list"): "{hint}; penstock records lists them",
    ("record_removed", ""): "--versions shows what it was; saving it again brings it back",
    (
        "already_running",
        "runs.start",
    ): "stop it first, or let it do the work: penstock run --detach",
    ("store_not_shared", "service.up"): "penstock up does all of it",
    ("source_held", "sources.unhold"): "penstock unhold {}; --detach queues it for later",
    ("upstream_open", "drain"): "penstock drain {} comes first; --wait waits for it",
    ("token_exists", "tokens.revoke"): "choose another name, or first: penstock token revoke {}",
    ("store_corrupt", "store.restore"): "{hint}: penstock db restore FILE",
    ("store_on_server", ""): "{hint}; `penstock db copy` makes a file of it",
    ("store_on_server", "store.copy"): "back it up with the server's own tools (pg_dump), or:"
    " penstock db copy",
    ("store_replaced", "store.restore"): "{hint} (penstock db restore FILE)",
}
# Verbs that only look: a sentence says more than the command alone.
BY_VERB: dict[str, str] = {
    "alerts.list": "penstock alerts list --all lists them",
    "canaries.list": "penstock canaries lists them",
    "checkpoints.history": "penstock checkpoints {} --history PARTITION lists its moves",
    "hooks.list": "penstock hooks lists them",
    "jobs.list": "penstock jobs lists them",
    "pages.try_": "penstock try {} URL",
    "rejects.list": "penstock rejects list shows them",
    "runbooks.list": "penstock runbook lists them",
    "runs.list": "penstock runs lists them",
    "sites.list": "penstock sites lists them",
    "sites.proposals": "penstock sites proposals {} --state all lists them",
    "sources.list": "penstock sources lists them",
    "tokens.list": "penstock token list shows them",
}


def hint_of(error: PenstockError) -> str:
    """The line below the message: a phrase of our own, the error's hint, or the remedy as a command."""
    verb = "" if error.remedy is None else error.remedy.verb
    phrase = BY_CODE.get((error.code, verb))
    if phrase is not None:
        return filled(phrase, error.remedy).replace("{hint}", error.hint)
    if error.remedy is None or error.hint != str(error.remedy):
        return error.hint
    return command_of(error.remedy)


def command_of(remedy: Remedy) -> str:
    """The command that does it; for what has none, the call."""
    phrase = BY_VERB.get(remedy.verb)
    if phrase is not None:
        return filled(phrase, remedy)
    return shell.command_of(remedy) or str(remedy)

"""One run by itself, and its end: deleting it, where the service may."""

from __future__ import annotations

from starlette.requests import Request

from mycelia_insight.runs.library import Library
from mycelia_insight.runs.removal import event_files, remove
from mycelia_insight.runs.status import RUNNING
from mycelia_insight.service.api.common import RUN, name_of, number, run_of
from mycelia_insight.service.api.runs import row_of
from mycelia_insight.service.endpoints import Parameter, RequestError, Table


def add(table: Table, library: Library) -> None:
    """Add the endpoints to `table`; they come last, since the path of a run takes what others leave."""

    @table.get("/runs/{run:path}/files", RUN)
    def files(_request: Request, run: str) -> dict:
        """Event files of a run, which are what is deleted with it, and whether the service may do that."""
        found = run_of(library, run)
        try:
            listed = event_files(found)
        except OSError as error:
            raise RequestError(404, f"the folder of {run!r} cannot be read: {error.strerror}") from error
        return {
            "folder": found.folder, "may_delete": library.may_delete,
            "files": [{"name": name, "size": size} for name, size in listed],
        }  # fmt: skip

    @table.get("/runs/{run:path}/about", RUN)
    def about(_request: Request, run: str) -> dict:
        """One run, as the list has it, with the `values` that it was made with and its data's pipeline."""
        found = run_of(library, run)
        lineage = library.lineages.of(found, found.tags())
        values = {name: number(v) if isinstance(v, float) else v for name, v in lineage.values().items()}
        return {**row_of(library, found), "values": values, "dataset": lineage.dataset}

    @table.get("/runs/{run:path}", RUN)
    def run(request: Request, run: str) -> dict:
        """The same of a run whose path does not end like another address: `a/tags` is the tags of `a`."""
        return about(request, run)

    @table.delete("/runs/{run:path}", RUN, Parameter("confirm", str, "the name of the run once more"))
    def delete(_request: Request, run: str, confirm: str) -> dict:
        """Deletes the event files of a run, and its folder if it is empty then. Other files stay.

        Refused (403) unless the service was started with --allow-delete, and (409) while the run is written.
        """
        found = run_of(library, run)
        if not library.may_delete:
            raise RequestError(403, "nothing is deleted: the service was not started with --allow-delete")
        if confirm != name_of(found.id):
            raise RequestError(400, f"'confirm' must be the name of the run, {run!r}, got {confirm[:80]!r}")
        if row_of(library, found)["status"] == RUNNING:
            raise RequestError(409, f"run {run!r} is being written; archive it, or wait until it has ended")
        try:
            return {"run": run, "deleted": remove(library, found)}
        except OSError as error:
            raise RequestError(409, f"{error.filename}: {error.strerror}") from error

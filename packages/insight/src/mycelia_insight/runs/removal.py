"""Deleting a run: its event files, the list of its files, and what the workspace keeps of it."""

from __future__ import annotations

import os
import shutil

from mycelia_insight.records import artifacts
from mycelia_insight.runs.discovery import event_file
from mycelia_insight.runs.library import Library
from mycelia_insight.runs.run import Run


def event_files(run: Run) -> list[tuple[str, int]]:
    """(name, bytes) of all event files in the run's folder, TensorBoard's beside MindSpore's too, and of
    `mycelia-artifacts.jsonl`.
    """
    with os.scandir(run.folder) as entries:
        ours = (one for one in entries if event_file(one.name) or one.name == artifacts.FILE)
        found = [one for one in ours if one.is_file(follow_symlinks=False)]
        return sorted((one.name, one.stat(follow_symlinks=False).st_size) for one in found)


def remove(library: Library, run: Run) -> list[str]:
    """Deletes the run's event files, and its folder if nothing else is in it; names of the files.

    Links, folders and files of other kinds stay. Errors: OSError; files that could be deleted are gone then.
    """
    names = [name for name, _ in event_files(run)]
    for name in names:
        os.unlink(os.path.join(run.folder, name))
    if run.name and not os.path.islink(run.folder) and not os.listdir(run.folder):
        os.rmdir(run.folder)
    library.look()
    library.notes.forget(run.folder)
    shutil.rmtree(run.place, ignore_errors=True)
    return names

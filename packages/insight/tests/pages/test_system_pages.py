"""The use of the machine, as a person looks at it while a training goes on."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "pages")]
from event_files import path_of, scalar  # noqa: E402
from test_pages import by, new_run, until  # noqa: E402

TAGS = (
    "system/gpu1_percent", "system/cpu_percent", "system/process_memory_MiB", "system/gpu0_power_W",
    "system/fan", "system/disk_percent",
)  # fmt: skip


def shown(driver) -> list[str]:
    return [one.get_attribute("data-tag") for one in by(driver, "scalar-chart")]


def test_the_machine_is_shown_by_its_parts_and_live(page, service, gallery):
    records = [scalar(tag, step, 10.0 * step, 1.7e9 + 5 * step) for step in range(3) for tag in TAGS]
    new_run(service, gallery, "machine", [*records, scalar("loss", 0, 1.0)])
    driver = page("#/train-manage/system?train_id=./machine")
    until(driver, lambda: len(shown(driver)) == len(TAGS))
    parts = [one.get_attribute("data-part") for one in by(driver, "system-part")]
    assert parts == ["cpu", "memory", "disk", "gpu0", "gpu1", "other"]
    assert [one.text for one in by(driver, "system-part")][:1] == ["Processors"]
    (chart,) = [one for one in by(driver, "scalar-chart") if one.get_attribute("data-tag") == TAGS[1]]
    until(driver, lambda: chart.get_attribute("data-points") == "3")
    with path_of(gallery / "machine").open("ab") as file:
        file.write(scalar(TAGS[1], 3, 50.0, 1.7e9 + 15))
    until(driver, lambda: chart.get_attribute("data-points") == "4")
    by(driver, "xaxis-relative")[0].click()
    until(driver, lambda: "axis=relative" in driver.current_url)
    until(driver, lambda: len(shown(driver)) == len(TAGS))


def test_scalars_of_the_training_stand_apart(page, service, gallery):
    new_run(service, gallery, "apart", [scalar("system/cpu_percent", 0, 1.0), scalar("loss", 0, 1.0)])
    driver = page("#/train-manage/scalar?train_id=./apart")
    until(driver, lambda: shown(driver) == ["loss"])
    kinds = service.get("/api/v1/runs/apart/tags")["kinds"]
    assert [tag["tag"] for tag in kinds["system"]] == ["system/cpu_percent"]
    compared = service.get("/api/v1/comparison")
    (row,) = [one for one in compared["runs"] if one["run"] == "apart"]
    assert compared["sets"][row["set"]] == ["loss"]
    driver = page("#/train-manage/system?train_id=./faults")
    until(driver, lambda: "no values of its machine" in driver.find_element("tag name", "main").text)

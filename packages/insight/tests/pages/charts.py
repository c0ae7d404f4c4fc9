"""What a chart of ECharts has drawn, asked from the instance that its element carries."""

from __future__ import annotations

from selenium.webdriver import ActionChains
from test_pages import until

_CHART = "const chart = arguments[0].chart; "


def series(driver, element) -> list[dict]:
    """Its series with their data, once it has drawn some."""
    wanted = (
        "return chart && (chart.getOption()?.series ?? []).map(({ id, type, data }) => ({ id, type, data }))"
    )
    return until(driver, lambda: driver.execute_script(_CHART + wanted, element))


def values(driver, element, name: str) -> list[list]:
    """Of a series by its id, the values of its marks."""
    (found,) = [one for one in series(driver, element) if one["id"] == name]
    return [one["value"] for one in found["data"]]


def texts(driver, element) -> list[str]:
    """Words that it has drawn."""
    shown = "return chart.getZr().storage.getDisplayList().flatMap(one => one.style?.text ?? [])"
    return driver.execute_script(_CHART + shown, element)


def place(driver, element, value: list, of: int = 0) -> list[float]:
    """Where a value of a series lies, in pixels from the element's upper left corner."""
    series(driver, element)
    return driver.execute_script(
        _CHART + "return chart.convertToPixel({ seriesIndex: arguments[2] }, arguments[1])",
        element,
        value,
        of,
    )


def on_axis(driver, element, value: float, axis: str) -> list[float]:
    """The same for a value on an axis of parallel coordinates, by its id."""
    script = (
        "const axes = chart.getModel().queryComponents({ mainType: 'parallelAxis', id: arguments[2] }); "
        "const space = chart.getModel().getComponent('parallel').coordinateSystem; "
        "return space.dataToPoint(arguments[1], axes[0].axis.dim)"
    )
    series(driver, element)
    return driver.execute_script(_CHART + script, element, value, axis)


def pointed(driver, element, point: list[float]) -> ActionChains:
    """Actions that begin with the pointer at a point of the element, scrolled to if out of sight."""
    scroll = (
        "const { left, top } = arguments[0].getBoundingClientRect(); "
        "const seen = document.elementFromPoint(left + arguments[1][0], top + arguments[1][1]); "
        "if (!arguments[0].contains(seen)) arguments[0].scrollIntoView({ block: 'center' })"
    )
    driver.execute_script(scroll, element, point)
    size = element.size  # Selenium counts from the middle
    across, down = round(point[0] - size["width"] / 2), round(point[1] - size["height"] / 2)
    return ActionChains(driver).move_to_element_with_offset(element, across, down)

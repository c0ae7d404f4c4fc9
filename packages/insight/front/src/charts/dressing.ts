// ECharts in the theme's colours.
import { init, type EChartsType } from "echarts/core";
import type { Inks } from "./inks";

function themeOf(inks: Inks): object {
  const axis = {
    axisLine: { onZero: false, lineStyle: { color: inks.quiet } },
    axisTick: { lineStyle: { color: inks.quiet } },
    axisLabel: { color: inks.quiet, fontSize: 11 },
    splitLine: { lineStyle: { color: inks.line } },
    minorTick: { show: false },
  };
  return {
    color: [inks.accent, inks.quiet, inks.alarm],
    textStyle: { fontFamily: "system-ui, sans-serif", color: inks.ink },
    valueAxis: axis,
    logAxis: axis,
    categoryAxis: axis,
    visualMap: { textStyle: { color: inks.quiet, fontSize: 11 } },
    tooltip: { backgroundColor: inks.surface, borderColor: inks.line, textStyle: { color: inks.ink, fontSize: 12 } },
  };
}

// On a canvas: a strict Content-Security-Policy forbids the styles that the SVG renderer writes into its elements.
export const made = (host: HTMLElement, inks: Inks): EChartsType => init(host, themeOf(inks), { renderer: "canvas" });
export const dressed = (chart: EChartsType, inks: Inks): void => chart.setTheme(themeOf(inks));

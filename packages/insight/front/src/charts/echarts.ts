// The parts of ECharts that the pages use. Only charts/Chart.svelte imports this file, when it draws for the first time.
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import { GridComponent, ParallelComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import { init, use, type EChartsType } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import type { Inks } from "./inks";

use([BarChart, CustomChart, LineChart, ParallelChart, ScatterChart, GridComponent, ParallelComponent, TooltipComponent, VisualMapComponent, CanvasRenderer]);

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

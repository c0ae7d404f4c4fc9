// The parts of ECharts that the pages use. Only charts/Chart.svelte imports this file, when it draws for the first time.
import { BarChart, CustomChart, LineChart, ParallelChart, ScatterChart } from "echarts/charts";
import { GridComponent, ParallelComponent, TooltipComponent, VisualMapComponent } from "echarts/components";
import { use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

export { dressed, made } from "./dressing";

use([BarChart, CustomChart, LineChart, ParallelChart, ScatterChart, GridComponent, ParallelComponent, TooltipComponent, VisualMapComponent, CanvasRenderer]);

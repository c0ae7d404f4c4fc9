// Stands in a report for ../charts/echarts: the parts that distributions need.
import { CustomChart, LineChart } from "echarts/charts";
import { GridComponent, TooltipComponent } from "echarts/components";
import { use } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";

export { dressed, made } from "../charts/dressing";

use([CustomChart, LineChart, GridComponent, TooltipComponent, CanvasRenderer]);

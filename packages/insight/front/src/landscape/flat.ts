// A landscape from above as a chart: lines of equal loss, or a shaded relief, with the path.
import type { CustomSeriesRenderItem, CustomSeriesRenderItemAPI, EChartsOption } from "echarts";
import { short } from "../charts/curves";
import { short as brief } from "../charts/distribution";
import { colourOf, css } from "./colours";
import { isoline, lossAt, type Field, type Look } from "./field";

const STOPS = 24; // colours of the scale
const STAR = "path://M0,-8L2.06,-2.83L7.61,-2.47L3.33,1.08L4.7,6.47L0,3.5L-4.7,6.47L-3.33,1.08L-7.61,-2.47L-2.06,-2.83Z";

// A value on an axis of the grid, from the number of its column or row; and back.
const along = (axis: number[], at: number) => axis[0]! + ((axis.at(-1)! - axis[0]!) * at) / (axis.length - 1 || 1);
const share = (axis: number[], value: number) => ((value - axis[0]!) / (axis.at(-1)! - axis[0]! || 1)) * (axis.length - 1);

// Column and row of a place on the axes.
export const under = (field: Field, x: number, y: number): [number, number] => [share(field.x, x), share(field.y, y)];

export function flatOption(field: Field, look: Look, relief: boolean, height: number): EChartsOption {
  const { inks, heights } = look;
  const grid = { left: 58, right: 70, top: 12, bottom: 26 };
  const axis = (values: number[]) => ({ type: "value", min: Math.min(values[0]!, values.at(-1)!), max: Math.max(values[0]!, values.at(-1)!), inverse: values[0]! > values.at(-1)!, splitLine: { show: false }, axisLabel: { formatter: brief, hideOverlap: true } });
  const place = (api: CustomSeriesRenderItemAPI, column: number, row: number) => (api.coord([along(field.x, column), along(field.y, row)]) as number[]).map((at) => at.toFixed(1)).join(" ");
  const line: CustomSeriesRenderItem = ({ dataIndex }, api) => {
    const level = look.levels[dataIndex]!;
    const pathData = isoline(field, level).map(([x0, y0, x1, y1]) => `M${place(api, x0!, y0!)}L${place(api, x1!, y1!)}`).join("");
    const stroke = relief ? "#000" : css(colourOf(look.palette, heights.of(level)));
    return pathData ? { type: "path", shape: { pathData }, style: { fill: "none", stroke, lineWidth: relief ? 0.6 : 1.3, opacity: relief ? 0.45 : 1 } } : undefined;
  };
  const ground: CustomSeriesRenderItem = ({ coordSys }) => {
    const { x, y, width, height } = coordSys as unknown as DOMRect;
    return { type: "image", style: { image: shade(Math.max(1, Math.round(width)), Math.max(1, Math.round(height)), field, look), x, y, width, height } };
  };
  const path = field.path.slice(0, look.path).map((one) => ({ name: String(one.step), value: [one.x, one.y] }));
  const custom = { type: "custom", silent: true, clip: true, encode: { x: [], y: [] } };
  return {
    grid: { ...grid, show: true, borderColor: inks.line, borderWidth: 1 },
    xAxis: axis(field.x),
    yAxis: [
      axis(field.y),
      // What is which colour: heights from 0 to 1 beside the scale, named by their losses.
      { type: "value", position: "right", offset: 22, min: 0, max: 1, splitLine: { show: false }, axisLine: { show: false }, axisTick: { show: false }, axisLabel: { margin: 4, customValues: [0, 0.5, 1], formatter: (at: number) => short(heights.loss(at)) } },
    ],
    visualMap: {
      type: "continuous",
      min: 0,
      max: 1,
      seriesIndex: [],
      right: grid.right - 22,
      top: grid.top,
      padding: 0,
      itemWidth: 10,
      itemHeight: Math.max(10, height - grid.top - grid.bottom),
      inRange: { color: Array.from({ length: STOPS }, (_, i) => css(colourOf(look.palette, i / (STOPS - 1)))) },
    },
    series: [
      { type: "line", id: "path", z: 5, clip: false, symbol: "circle", symbolSize: 7, lineStyle: { width: 2, color: inks.alarm }, itemStyle: { color: inks.alarm, borderColor: inks.surface, borderWidth: 1 }, data: path },
      { type: "line", id: "halo", z: 4, silent: true, symbol: "none", lineStyle: { width: 4, color: inks.surface }, data: path },
      { type: "scatter", id: "end", z: 6, symbol: STAR, symbolSize: 16, itemStyle: { color: inks.ink, borderColor: inks.surface, borderWidth: 1.2, opacity: 1 }, data: field.end ? [[field.end.x, field.end.y]] : [] },
      { ...custom, id: "lines", z: 3, data: look.levels, renderItem: line },
      { ...custom, id: "relief", z: 2, data: relief ? [0] : [], renderItem: ground },
    ],
  } as EChartsOption;
}

function shade(width: number, height: number, field: Field, look: Look): HTMLCanvasElement {
  const image = new ImageData(width, height);
  const steep = 0.4 * (Math.max(field.columns, field.rows) - 1); // from the lowest to the greatest over an edge: 0.4
  const rise = (from: number, to: number) => (look.heights.of(to) - look.heights.of(from)) * steep || 0;
  for (let j = 0; j < height; j++)
    for (let i = 0; i < width; i++) {
      const column = (i / (width - 1 || 1)) * (field.columns - 1);
      const row = (1 - j / (height - 1 || 1)) * (field.rows - 1);
      const loss = lossAt(field, column, row);
      if (Number.isNaN(loss)) continue;
      const level = look.heights.of(loss);
      // Light from the upper left, by differences of heights.
      const [left, low] = [Math.max(0, column - 0.5), Math.max(0, row - 0.5)];
      const dx = rise(lossAt(field, left, row), lossAt(field, Math.min(field.columns - 1, left + 1), row));
      const dy = rise(lossAt(field, column, low), lossAt(field, column, Math.min(field.rows - 1, low + 1)));
      const light = (1 + 0.6 * (dx - dy)) / Math.hypot(1, dx, dy);
      const bright = Math.min(1.25, Math.max(0.55, 0.6 + 0.45 * light));
      const colour = colourOf(look.palette, level);
      image.data.set([...colour.map((c) => Math.min(255, c * bright)), 255], 4 * (j * width + i));
    }
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [width, height];
  sheet.getContext("2d")!.putImageData(image, 0, 0);
  return sheet;
}

// The pages by their routes. A page of a run takes its id; what it needs of the run decides whether it is offered.
import type { Component } from "svelte";
import type { Language } from "../texts";

type Title = Record<Language, string>;

export interface RunPage {
  path: string;
  title: Title;
  kinds: string[]; // it is offered if the run has values of one of these; offered always if empty
  load: () => Promise<{ default: Component<{ id: string }> }>;
}

export interface Board {
  path: string;
  unlisted?: boolean; // not named in the header
  title: Title;
  load: () => Promise<{ default: Component }>;
}

export const runPages: RunPage[] = [
  { path: "/train-manage/training-dashboard", title: { en: "Dashboard", zh: "训练看板" }, kinds: [], load: () => import("./TrainingDashboard.svelte") },
  { path: "/train-manage/scalar", title: { en: "Scalars", zh: "标量" }, kinds: ["scalar"], load: () => import("./Scalars.svelte") },
  { path: "/train-manage/histogram", title: { en: "Distributions", zh: "参数分布" }, kinds: ["histogram"], load: () => import("./Histograms.svelte") },
  { path: "/train-manage/image", title: { en: "Images", zh: "图像" }, kinds: ["image"], load: () => import("./Images.svelte") },
  { path: "/train-manage/tensor", title: { en: "Tensors", zh: "张量" }, kinds: ["tensor"], load: () => import("./Tensors.svelte") },
  { path: "/train-manage/text", title: { en: "Texts", zh: "文本" }, kinds: ["text"], load: () => import("./Texts.svelte") },
  { path: "/train-manage/audio", title: { en: "Sounds", zh: "音频" }, kinds: ["audio"], load: () => import("./Sounds.svelte") },
  { path: "/train-manage/embedding", title: { en: "Embeddings", zh: "嵌入" }, kinds: ["tensor", "projector"], load: () => import("./Embeddings.svelte") },
  { path: "/train-manage/loss-analysis", title: { en: "Loss landscape", zh: "损失函数地形图" }, kinds: ["landscape"], load: () => import("./Landscape.svelte") },
  { path: "/train-manage/system", title: { en: "Machine", zh: "系统资源" }, kinds: ["system"], load: () => import("./System.svelte") },
  { path: "/train-manage/graph", title: { en: "Graph", zh: "计算图" }, kinds: ["graph"], load: () => import("./Graph.svelte") },
  { path: "/train-manage/operatorPrecision", title: { en: "Precision", zh: "算子精度" }, kinds: ["graph"], load: () => import("./OperatorPrecision.svelte") },
  { path: "/train-manage/data-map", title: { en: "Data pipeline", zh: "数据图" }, kinds: ["dataset_graph"], load: () => import("./DataMap.svelte") },
];

// Over all runs, named in the header; the first one is shown for unknown addresses.
export const boards: [Board, ...Board[]] = [
  { path: "/summary-manage", title: { en: "Summary list", zh: "训练列表" }, load: () => import("./Runs.svelte") },
  { path: "/model-traceback", title: { en: "Model lineage", zh: "模型溯源" }, load: () => import("./ModelLineage.svelte") },
  { path: "/data-traceback", title: { en: "Dataset lineage", zh: "数据溯源" }, load: () => import("./DatasetLineage.svelte") },
  { path: "/dashboard", unlisted: true, title: { en: "Dashboard", zh: "面板" }, load: () => import("./Dashboard.svelte") },
  { path: "/compare-analysis/scalar", title: { en: "Comparison", zh: "对比看板" }, load: () => import("./Compare.svelte") },
  { path: "/compare-analysis/loss", title: { en: "Landscapes", zh: "地形图对比" }, load: () => import("./CompareLandscapes.svelte") },
  { path: "/alerts", title: { en: "Alerts", zh: "告警" }, load: () => import("./Alerts.svelte") },
  { path: "/debugger", title: { en: "Debugger", zh: "调试器" }, load: () => import("./Debugger.svelte") },
  { path: "/offline-debugger", unlisted: true, title: { en: "Offline debugger", zh: "离线调试器" }, load: () => import("./OfflineDebugger.svelte") },
];

// Words of the training dashboard; hints say how what is missing is recorded.
import { topic } from ".";

export const dashboardTexts = topic(
  {
    cards: { scalar: "Scalars", histogram: "Parameter distribution", tensor: "Tensor", graph: "Computational graph", dataset_graph: "Data pipeline", image: "Images", landscape: "Loss landscape" },
    open: "Open",
    switchTag: "Next tag",
    tags: (n: number) => (n === 1 ? "1 tag" : `${n} tags`),
    none: "No data yet.",
    how: "How to record it",
    hints: {
      scalar: "SummaryCollector records the loss; ScalarSummary records any number.",
      histogram: "SummaryCollector records the first five parameters; histogram_regular chooses others. HistogramSummary records any tensor.",
      tensor: "TensorSummary records a tensor.",
      graph: "SummaryCollector records the graph of a compiled network, and so does SummaryRecord(network=...).",
      dataset_graph: "SummaryCollector records the pipeline of the dataset that it is trained with.",
      image: "SummaryCollector records the first column of a batch where it has images; ImageSummary records any.",
    },
    also: "Also recorded",
  },
  {
    cards: { scalar: "标量", histogram: "参数分布", tensor: "张量", graph: "计算图", dataset_graph: "数据图", image: "图像", landscape: "损失图" },
    open: "打开",
    switchTag: "切换标签",
    tags: (n: number) => `${n} 个标签`,
    none: "暂无数据。",
    how: "如何记录",
    hints: {
      scalar: "SummaryCollector 会记录损失值；ScalarSummary 可记录任何数值。",
      histogram: "SummaryCollector 会记录前五个参数，用 histogram_regular 可选择其他参数。HistogramSummary 可记录任何张量。",
      tensor: "TensorSummary 可记录张量。",
      graph: "SummaryCollector 会记录编译后网络的计算图，SummaryRecord(network=...) 也会记录。",
      dataset_graph: "SummaryCollector 会记录训练所用数据集的处理流程。",
      image: "当一个批次的第一列为图像时，SummaryCollector 会记录；ImageSummary 可记录任何图像。",
    },
    also: "其他数据",
  },
);

// Words of the report that `mycelia-insight html` writes.
import { topic } from ".";

export const report = topic(
  {
    written: (when: string, runs: number) => `Written ${when} · ${runs === 1 ? "1 run" : `${runs} runs`}`,
    runs: "Runs",
    show: "Show",
    search: "Tags by text or /pattern/",
    curves: "Scalars",
    images: "Images",
    histograms: "Distributions",
    texts: "Texts",
    left: "What this file has no room for",
    thinned: "Curves are thinned: of each of their columns the first, last, least and greatest point are kept, and one of each kind that is not finite.",
  },
  {
    written: (when: string, runs: number) => `生成于 ${when} · ${runs} 个训练`,
    runs: "训练",
    show: "显示",
    search: "按文本或 /正则/ 筛选标签",
    curves: "标量",
    images: "图像",
    histograms: "参数分布",
    texts: "文本",
    left: "因文件大小限制而未包含的内容",
    thinned: "曲线已抽稀：每列保留首、末、最小、最大点，以及每种非有限值各一个。",
  },
);

import { topic } from ".";

export const compareTexts = topic(
  {
    none: "No run has scalars yet.",
    noneChosen: "Choose runs on the left.",
    chosen: (n: number, of: number) => `${n} of ${of} runs`,
    all: (n: number) => (n === 1 ? "All (1)" : `All (${n})`),
    nothing: "None",
    groupBy: "Group by",
    noGroup: "nothing",
    noValue: "–",
    runs: (n: number) => (n === 1 ? "1 run" : `${n} runs`),
    band: "Lines are means of the runs, bands reach from the least to the greatest value.",
  },
  {
    none: "还没有带标量的训练。",
    noneChosen: "请在左侧选择训练。",
    chosen: (n: number, of: number) => `${n} / ${of} 个训练`,
    all: (n: number) => `全选（${n}）`,
    nothing: "全不选",
    groupBy: "分组依据",
    noGroup: "不分组",
    noValue: "–",
    runs: (n: number) => `${n} 个训练`,
    band: "曲线为各训练的均值，色带为最小值到最大值的范围。",
  },
);

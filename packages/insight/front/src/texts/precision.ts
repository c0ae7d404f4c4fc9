import { topic } from ".";

export const precisionTexts = topic(
  {
    search: "Part of an operator's name",
    download: "Download .xlsx",
    number: "ID",
    name: "Operator",
    full: "Full name with scope",
    type: "Type",
    flag: "Precision flag",
    reduced: "Reduced",
    yes: "yes",
    no: "no",
    counts: (reduced: number, flagged: number) => `${reduced === 1 ? "1 operator" : `${reduced.toLocaleString("en")} operators`} of reduced precision, ${(flagged - reduced).toLocaleString("en")} with another flag; these come first.`,
    noFlags: "No operator of this graph has a precision flag: all compute with the bits that they were given, or the graph does not tell.",
  },
  {
    search: "算子名称的一部分",
    download: "下载 .xlsx",
    number: "编号",
    name: "算子",
    full: "完整名称（含作用域）",
    type: "类型",
    flag: "精度标记",
    reduced: "是否降精度",
    yes: "是",
    no: "否",
    counts: (reduced: number, flagged: number) => `${reduced.toLocaleString("zh")} 个降精度算子，${(flagged - reduced).toLocaleString("zh")} 个带其他标记；它们排在前面。`,
    noFlags: "该计算图中没有带精度标记的算子：全部按输入的位数计算，或计算图没有记录。",
  },
);

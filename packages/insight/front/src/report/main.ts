import { mount } from "svelte";
import Report from "./Report.svelte";
import "uplot/dist/uPlot.min.css";
import "../theme.css";

mount(Report, { target: document.getElementById("app")! });

// The chart library and its style, loaded when the first chart is opened.
import "uplot/dist/uPlot.min.css";

export { default } from "uplot";

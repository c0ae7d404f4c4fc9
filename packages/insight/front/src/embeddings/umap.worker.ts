// Lays points out beside the page; tells it how far it is ten times a second.
import { umap, type Job } from "./umap";

onmessage = ({ data }: MessageEvent<Job>) => {
  let told = 0;
  for (const { round, coordinates } of umap(data)) {
    const now = performance.now();
    if (now - told < 100 && round < data.rounds) continue;
    told = now;
    postMessage({ round, coordinates: coordinates.slice() });
  }
};

/* Boxes of a detector: which of them remain where they overlap. */

typedef struct {
    int32_t boxes, labels, classes; /* labels: classes and what is before them, which is background */
    int32_t most, most_of_class, classes_of_box, regular;
    float scale[4]; /* of height, width, x, y */
    float overlap, score;
} micro_detector;

/* Boxes (top, left, bottom, right) from their codes and anchors [boxes, 4]. */
static void micro_decode_boxes(const micro_detector *p, const float *codes, const float *anchors, float *boxes)
{
    int32_t i;
    for (i = 0; i < p->boxes; i++, codes += 4, anchors += 4, boxes += 4) {
        const float y = codes[0] / p->scale[3] * anchors[2] + anchors[0], x = codes[1] / p->scale[2] * anchors[3] + anchors[1];
        const float h = 0.5f * expf(codes[2] / p->scale[0]) * anchors[2], w = 0.5f * expf(codes[3] / p->scale[1]) * anchors[3];
        boxes[0] = y - h;
        boxes[1] = x - w;
        boxes[2] = y + h;
        boxes[3] = x + w;
    }
}

/* What two boxes share, as a part of what they cover together. */
static float micro_overlap(const float *a, const float *b)
{
    const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]);
    float high = (a[2] < b[2] ? a[2] : b[2]) - (a[0] > b[0] ? a[0] : b[0]), wide = (a[3] < b[3] ? a[3] : b[3]) - (a[1] > b[1] ? a[1] : b[1]);
    if (area_a <= 0.0f || area_b <= 0.0f) return 0.0f;
    if (!(high > 0.0f)) high = 0.0f;
    if (!(wide > 0.0f)) wide = 0.0f;
    return high * wide / (area_a + area_b - high * wide);
}

static float micro_score_key(float score)
{
    return score == score ? score : -INFINITY;
}

/* The place of the largest score behind the one at `last` in order (-1: of all), equal ones by their places; -1: there is none. */
static int32_t micro_next_score(const float *scores, int32_t count, int32_t step, int32_t last)
{
    int32_t best = -1, i;
    const float before = last < 0 ? 0.0f : micro_score_key(scores[last * step]);
    for (i = 0; i < count; i++) {
        const float key = micro_score_key(scores[i * step]);
        if (last >= 0 && !(key < before || (key == before && i > last))) continue;
        if (best < 0 || key > micro_score_key(scores[best * step])) best = i;
    }
    return best;
}

/* Boxes by their scores that overlap no one found before, at most `most`; how many. */
static int32_t micro_select_boxes(const micro_detector *p, const float *boxes, const float *scores, int32_t step, int32_t most, int32_t *found)
{
    int32_t count = 0, k, i;
    for (i = micro_next_score(scores, p->boxes, step, -1); i >= 0 && count < most; i = micro_next_score(scores, p->boxes, step, i)) {
        if (!(scores[i * step] >= p->score)) break;
        for (k = 0; k < count; k++)
            if (micro_overlap(boxes + 4 * found[k], boxes + 4 * i) > p->overlap) break;
        if (k == count) found[count++] = i;
    }
    return count;
}

/* Codes [boxes, 4], scores [boxes, labels], anchors [boxes, 4]: boxes, classes, scores and how many there are; zeros behind them. Scratch: boxes and,
 * for each box, the largest score and a place. */
void micro_detect_f32(const micro_detector *p, const float *codes, const float *scores, const float *anchors, float *y, float *classes, float *best,
                      float *count, void *scratch)
{
    float *boxes = (float *)scratch, *largest = boxes + 4 * p->boxes;
    int32_t *found = (int32_t *)(void *)(largest + p->boxes);
    const int32_t first = p->labels - p->classes, places = p->most * p->classes_of_box;
    int32_t n = 0, i, k, m;
    micro_decode_boxes(p, codes, anchors, boxes);
    for (i = 0; i < places; i++) {
        memset(y + 4 * i, 0, 4 * sizeof(float));
        classes[i] = best[i] = 0.0f;
    }
    if (p->regular) {
        for (k = 0; k < p->classes; k++) {
            const int32_t some = micro_select_boxes(p, boxes, scores + first + k, p->labels, p->most_of_class, found);
            for (i = 0; i < some; i++) {
                const float score = scores[found[i] * p->labels + first + k];
                for (m = n < p->most ? n++ : p->most; m > 0 && score > best[m - 1]; m--) {
                    if (m == p->most) continue;
                    best[m] = best[m - 1];
                    classes[m] = classes[m - 1];
                    memcpy(y + 4 * m, y + 4 * (m - 1), 4 * sizeof(float));
                }
                if (m == p->most) continue;
                best[m] = score;
                classes[m] = (float)k;
                memcpy(y + 4 * m, boxes + 4 * found[i], 4 * sizeof(float));
            }
        }
    } else {
        for (i = 0; i < p->boxes; i++) {
            largest[i] = scores[i * p->labels + first];
            for (k = 1; k < p->classes; k++)
                if (scores[i * p->labels + first + k] > largest[i]) largest[i] = scores[i * p->labels + first + k];
        }
        m = micro_select_boxes(p, boxes, largest, 1, p->most, found);
        for (i = 0; i < m; i++) {
            const float *own = scores + found[i] * p->labels + first;
            int32_t at = -1;
            for (k = 0; k < p->classes_of_box && k < p->classes; k++, n++) {
                at = micro_next_score(own, p->classes, 1, at);
                memcpy(y + 4 * n, boxes + 4 * found[i], 4 * sizeof(float));
                classes[n] = (float)at;
                best[n] = own[at];
            }
        }
    }
    *count = (float)n;
}

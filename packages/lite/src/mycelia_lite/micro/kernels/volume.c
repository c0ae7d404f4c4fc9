/* Windows over images along up to three axes with the channels first, of whatever numbers, by their definition. */

typedef struct {
    int32_t batch, channels, outputs, group;
    int32_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    int32_t divisor, end[3]; /* of means: 0 the elements in the window, -1 the window with its padding, which reaches to `end` */
    double low, high;
} micro_volume;

static int32_t micro_plane(const int32_t *size)
{
    return size[0] * size[1] * size[2];
}

/* The element that the tap t of the window at the place i lies on; -1: outside. */
static int32_t micro_tap(const micro_volume *p, int32_t i, int32_t t)
{
    int32_t at = 0, step = 1, d;
    for (d = 2; d >= 0; d--) {
        const int32_t here = i % p->out[d] * p->stride[d] - p->pad[d] + t % p->kernel[d] * p->dilation[d];
        if (here < 0 || here >= p->in[d]) return -1;
        at += here * step;
        step *= p->in[d];
        i /= p->out[d];
        t /= p->kernel[d];
    }
    return at;
}

/* The window of a convolution whose tap t lies on the place i, turned round: its number; -1: there is none. */
static int32_t micro_window_of(const micro_volume *p, int32_t i, int32_t t)
{
    int32_t at = 0, step = 1, d;
    for (d = 2; d >= 0; d--) {
        const int32_t here = i % p->out[d] + p->pad[d] - t % p->kernel[d] * p->dilation[d];
        if (here < 0 || here % p->stride[d] != 0 || here / p->stride[d] >= p->in[d]) return -1;
        at += here / p->stride[d] * step;
        step *= p->in[d];
        i /= p->out[d];
        t /= p->kernel[d];
    }
    return at;
}

/* For f32, f64, i32: w [outputs, channels / group, kernel] */
void micro_conv_volume_SUFFIX(const micro_volume *p, const TYPE *x, const TYPE *w, const TYPE *bias, TYPE *y)
{
    const int32_t channels = p->channels / p->group, taps = micro_plane(p->kernel), places = micro_plane(p->out), plane = micro_plane(p->in);
    int32_t n, o, i, t, c;
    for (n = 0; n < p->batch; n++, x += p->channels * plane)
        for (o = 0; o < p->outputs; o++)
            for (i = 0; i < places; i++) {
                const TYPE *from = x + o / (p->outputs / p->group) * channels * plane, *kernel = w + o * channels * taps;
                WRAP sum = (WRAP)(bias ? bias[o] : 0);
                for (t = 0; t < taps; t++) {
                    const int32_t at = micro_tap(p, i, t);
                    for (c = 0; at >= 0 && c < channels; c++) sum += (WRAP)from[c * plane + at] * (WRAP)kernel[c * taps + t];
                }
                *y++ = (TYPE)sum < p->low ? (TYPE)p->low : (TYPE)sum > p->high ? (TYPE)p->high : (TYPE)sum;
            }
}

/* The transpose of a convolution; w [channels, outputs / group, kernel] */
void micro_conv_volume_transpose_f32(const micro_volume *p, const float *x, const float *w, float *y)
{
    const int32_t channels = p->channels / p->group, outputs = p->outputs / p->group, taps = micro_plane(p->kernel);
    const int32_t places = micro_plane(p->out), plane = micro_plane(p->in);
    int32_t n, o, i, t, c;
    for (n = 0; n < p->batch; n++, x += p->channels * plane)
        for (o = 0; o < p->outputs; o++)
            for (i = 0; i < places; i++) {
                const int32_t first = o / outputs * channels;
                float sum = 0.0f;
                for (t = 0; t < taps; t++) {
                    const int32_t at = micro_window_of(p, i, t);
                    for (c = first; at >= 0 && c < first + channels; c++) sum += x[c * plane + at] * w[(c * outputs + o % outputs) * taps + t];
                }
                *y++ = sum;
            }
}

/* The largest elements of windows, or what is not a number. */
void micro_max_pool_volume_f32(const micro_volume *p, const float *x, float *y)
{
    const int32_t taps = micro_plane(p->kernel), places = micro_plane(p->out), plane = micro_plane(p->in);
    int32_t n, i, t;
    for (n = 0; n < p->batch; n++, x += plane)
        for (i = 0; i < places; i++) {
            float most = -INFINITY;
            for (t = 0; t < taps; t++) {
                const int32_t at = micro_tap(p, i, t);
                if (at >= 0 && (x[at] > most || x[at] != x[at])) most = x[at];
            }
            *y++ = most;
        }
}

/* Where in its plane the first of the largest elements of each window lies, or what is not a number. */
void micro_max_pool_place_f32(const micro_volume *p, const float *x, int64_t *y)
{
    const int32_t taps = micro_plane(p->kernel), places = micro_plane(p->out), plane = micro_plane(p->in);
    int32_t n, i, t;
    for (n = 0; n < p->batch; n++, x += plane)
        for (i = 0; i < places; i++) {
            int32_t best = -1;
            for (t = 0; t < taps; t++) {
                const int32_t at = micro_tap(p, i, t);
                if (at < 0) continue;
                if (best < 0 || x[at] > x[best] || (x[at] != x[at] && x[best] == x[best])) best = at;
            }
            *y++ = best < 0 ? 0 : best;
        }
}

/* Means of windows. */
void micro_avg_pool_volume_f32(const micro_volume *p, const float *x, float *y)
{
    const int32_t taps = micro_plane(p->kernel), places = micro_plane(p->out), plane = micro_plane(p->in);
    int32_t n, i, t, d;
    for (n = 0; n < p->batch; n++, x += plane)
        for (i = 0; i < places; i++) {
            int32_t there = 0, padded = 1, rest = i;
            float sum = 0.0f;
            for (t = 0; t < taps; t++) {
                const int32_t at = micro_tap(p, i, t);
                if (at < 0) continue;
                sum += x[at];
                there++;
            }
            for (d = 2; d >= 0; d--) {
                const int32_t left = p->end[d] - (rest % p->out[d] * p->stride[d] - p->pad[d]);
                padded *= left < p->kernel[d] ? left : p->kernel[d];
                rest /= p->out[d];
            }
            *y++ = sum / (float)(p->divisor > 0 ? p->divisor : p->divisor < 0 ? padded : there);
        }
}

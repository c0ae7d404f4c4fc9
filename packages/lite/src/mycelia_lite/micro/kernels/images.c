/* Images of other sizes, and elements of images at places between them. */

typedef struct {
    int32_t rows, from, to, inner, each; /* from, to: sizes of the axis; each: slices that are added up */
} micro_resampling;

/* Sums of slices along an axis times weights; places and weights [to, each]. */
void micro_resample_f32(const micro_resampling *p, const float *x, const int32_t *places, const float *weights, float *y)
{
    int32_t n, i, k, c;
    for (n = 0; n < p->rows; n++, x += p->from * p->inner)
        for (i = 0; i < p->to; i++, y += p->inner)
            for (k = 0; k < p->each; k++) {
                const float weight = weights[i * p->each + k], *slice = x + places[i * p->each + k] * p->inner;
                for (c = 0; c < p->inner; c++) y[c] = k ? y[c] + slice[c] * weight : slice[c] * weight;
            }
}

typedef struct {
    int32_t regions, images, height, width, channels, out_height, out_width;
    float number; /* of what is outside of the image, or the scale of regions */
} micro_regions;

/* The place i of `count` from `begin` to `end`, which are parts of `size` elements. */
static float micro_place_between(float begin, float end, int32_t i, int32_t count, int32_t size)
{
    const float last = (float)(size - 1);
    if (count == 1) return 0.5f * (begin + end) * last;
    return begin * last + (float)i * (end - begin) * last / (float)(count - 1);
}

/* Regions [regions, 4] (y x y x, as parts) of images [images, height, width, channels]: elements between four. */
int32_t micro_crop_f32(const micro_regions *p, const float *x, const float *regions, const int32_t *of, float *y)
{
    int32_t r, i, j, c;
    for (r = 0; r < p->regions; r++)
        if (of[r] < 0 || of[r] >= p->images) return 1;
    for (r = 0; r < p->regions; r++, regions += 4)
        for (i = 0; i < p->out_height; i++) {
            const float *image = x + of[r] * p->height * p->width * p->channels;
            const float down = micro_place_between(regions[0], regions[2], i, p->out_height, p->height);
            for (j = 0; j < p->out_width; j++, y += p->channels) {
                const float across = micro_place_between(regions[1], regions[3], j, p->out_width, p->width);
                const int inside = down >= 0.0f && down <= (float)(p->height - 1) && across >= 0.0f && across <= (float)(p->width - 1);
                const int32_t top = inside ? (int32_t)down : 0, left = inside ? (int32_t)across : 0;
                const float v = down - (float)top, h = across - (float)left;
                const int32_t under = top + 1 < p->height ? p->width * p->channels : 0, beside = left + 1 < p->width ? p->channels : 0;
                const float *at = image + (top * p->width + left) * p->channels;
                for (c = 0; c < p->channels; c++) {
                    const float above = at[c] * (1.0f - h) + at[c + beside] * h, below = at[c + under] * (1.0f - h) + at[c + under + beside] * h;
                    y[c] = inside ? above * (1.0f - v) + below * v : p->number;
                }
            }
        }
    return 0;
}

/* The first (`up` 0) or the end (1) of a cell of `size` elements, within [0, most]. */
static int32_t micro_cell(float cell, int32_t number, int32_t up, int32_t begin, int32_t most)
{
    const float at = (up ? ceilf((float)(number + 1) * cell) : floorf((float)number * cell)) + (float)begin;
    return at < 0.0f ? 0 : at > (float)most ? most : (int32_t)at;
}

static float micro_rounded_place(float x)
{
    const float at = roundf(x);
    return at < -16777216.0f ? -16777216.0f : at > 16777216.0f ? 16777216.0f : at;
}

/* The largest elements of the cells of regions [regions, 5] (image, then x y x y times the scale `number`). */
int32_t micro_pool_regions_f32(const micro_regions *p, const float *x, const float *regions, float *y)
{
    int32_t r, i, j, c, h, w, d;
    for (r = 0; r < p->regions; r++)
        if (!(regions[5 * r] >= 0.0f && regions[5 * r] < (float)p->images)) return 1;
    for (r = 0; r < p->regions; r++, regions += 5) {
        const float *image = x + (int32_t)regions[0] * p->height * p->width * p->channels;
        const int32_t cells[2] = {p->out_height, p->out_width};
        int32_t begin[2];
        float cell[2];
        for (d = 0; d < 2; d++) {
            const float first = micro_rounded_place(regions[1 + d] * p->number), last = micro_rounded_place(regions[3 + d] * p->number);
            const int is_place = first == first && last == last;
            begin[d] = is_place ? (int32_t)first : 0;
            cell[d] = !is_place ? 0.0f : (last - first + 1.0f > 1.0f ? last - first + 1.0f : 1.0f) / (float)cells[d];
        }
        for (i = 0; i < p->out_height; i++)
            for (j = 0; j < p->out_width; j++, y += p->channels) {
                const int32_t top = micro_cell(cell[0], i, 0, begin[0], p->height), bottom = micro_cell(cell[0], i, 1, begin[0], p->height);
                const int32_t left = micro_cell(cell[1], j, 0, begin[1], p->width), right = micro_cell(cell[1], j, 1, begin[1], p->width);
                for (c = 0; c < p->channels; c++) {
                    float most = top < bottom && left < right ? -3.4028234664e38f : 0.0f;
                    for (h = top; h < bottom; h++)
                        for (w = left; w < right; w++) {
                            const float v = image[(h * p->width + w) * p->channels + c];
                            if (v > most) most = v;
                        }
                    y[c] = most;
                }
            }
    }
    return 0;
}

typedef struct {
    int32_t batch, channels, places, rank, size[3];
    int32_t mode, padding, corners;
} micro_grid;

/* A place beyond [low, high] reflected at the ends, as often as needed. */
static float micro_reflected(float x, float low, float high)
{
    const float range = high - low, beyond = x < low ? low - x : x - high;
    float turns, rest;
    if (!(range > 0.0f)) return low;
    if (x >= low && x <= high) return x;
    turns = floorf(beyond / range);
    rest = beyond - turns * range;
    return (x < low) == (fmodf(turns, 2.0f) == 0.0f) ? low + rest : high - rest;
}

/* The element at whole places; outside is padding. */
static float micro_grid_element(const micro_grid *p, const float *x, const int32_t *at)
{
    int32_t place = 0, d;
    for (d = 0; d < p->rank; d++) {
        int32_t i = at[d];
        const int32_t last = p->size[d] - 1;
        if (i < 0 || i > last) {
            if (p->padding == 0) return 0.0f;
            if (p->padding == 2) i = (int32_t)micro_reflected((float)i, p->corners ? 0.0f : -0.5f, (float)last + (p->corners ? 0.0f : 0.5f));
            i = i < 0 ? 0 : i > last ? last : i;
        }
        place = place * p->size[d] + i;
    }
    return x[place];
}

/* How much of 2 or 4 elements around a place counts, of which the fraction is t; 4: the cubic convolution of Keys. */
static int32_t micro_grid_weights(int32_t mode, float t, float *w)
{
    const float c = -0.75f;
    if (mode == 1) {
        w[0] = 1.0f - t;
        w[1] = t;
        return 2;
    }
    w[0] = ((c * (t + 1.0f) - 5.0f * c) * (t + 1.0f) + 8.0f * c) * (t + 1.0f) - 4.0f * c;
    w[1] = ((c + 2.0f) * t - (c + 3.0f)) * t * t + 1.0f;
    w[2] = ((c + 2.0f) * (1.0f - t) - (c + 3.0f)) * (1.0f - t) * (1.0f - t) + 1.0f;
    w[3] = ((c * (2.0f - t) - 5.0f * c) * (2.0f - t) + 8.0f * c) * (2.0f - t) - 4.0f * c;
    return 4;
}

static float micro_grid_sample(const micro_grid *p, const float *x, const float *place)
{
    int32_t at[3] = {0, 0, 0}, first[3] = {0, 0, 0}, taps = 1, count = 1, d, k;
    float w[3][4], sum = 0.0f;
    if (p->mode == 0) {
        for (d = 0; d < p->rank; d++) at[d] = (int32_t)place[d];
        return micro_grid_element(p, x, at);
    }
    for (d = 0; d < p->rank; d++) {
        const float whole = floorf(place[d]);
        taps = micro_grid_weights(p->mode, place[d] - whole, w[d]);
        first[d] = (int32_t)whole - (taps == 4 ? 1 : 0);
        count *= taps;
    }
    for (k = 0; k < count; k++) {
        float weight = 1.0f;
        int32_t rest = k;
        for (d = p->rank - 1; d >= 0; d--, rest /= taps) {
            at[d] = first[d] + rest % taps;
            weight *= w[d][rest % taps];
        }
        sum += weight * micro_grid_element(p, x, at);
    }
    return sum;
}

/* x [batch, channels, sizes...] at the places of a grid [batch, places, rank] of numbers in [-1, 1], the last axis first. */
void micro_sample_grid_f32(const micro_grid *p, const float *x, const float *grid, float *y)
{
    int32_t n, c, i, d, plane = 1;
    for (d = 0; d < p->rank; d++) plane *= p->size[d];
    for (n = 0; n < p->batch; n++, grid += p->places * p->rank)
        for (c = 0; c < p->channels; c++, x += plane)
            for (i = 0; i < p->places; i++) {
                float at[3] = {0.0f, 0.0f, 0.0f};
                for (d = 0; d < p->rank; d++) {
                    const float part = grid[i * p->rank + p->rank - 1 - d], size = (float)p->size[d];
                    const float low = p->corners ? 0.0f : -0.5f, high = size - (p->corners ? 1.0f : 0.5f);
                    float here = p->corners ? (part + 1.0f) / 2.0f * (size - 1.0f) : ((part + 1.0f) * size - 1.0f) / 2.0f;
                    if (!(fabsf(here) < 1e9f)) here = here > 0.0f ? 1e9f : -1e9f;
                    if (p->mode == 0) here = rintf(here);
                    if (here < low || here > high) {
                        if (p->padding == 1 && p->mode != 2) here = here < 0.0f ? 0.0f : here > size - 1.0f ? size - 1.0f : here;
                        if (p->padding == 2) here = micro_reflected(here, low, high);
                    }
                    at[d] = here;
                }
                *y++ = micro_grid_sample(p, x, at);
            }
}

typedef struct {
    int32_t regions, images, channels, height, width, out_height, out_width;
    int32_t largest, half_pixel, samples; /* samples: of a cell along an axis; 0: as many as it has elements */
    float scale;
} micro_aligning;

/* The elements around a place times their weights: their sum, or the largest of them and of `most`. */
static float micro_between_four(const float *x, float v, float h, int32_t height, int32_t width, int32_t largest, int any, float most)
{
    float weight[4] = {0.0f, 0.0f, 0.0f, 0.0f}, sum = 0.0f;
    int32_t at[4] = {0, 0, 0, 0}, k;
    if (v >= -1.0f && v <= (float)height && h >= -1.0f && h <= (float)width) {
        int32_t top = v > 0.0f ? (int32_t)v : 0, left = h > 0.0f ? (int32_t)h : 0, bottom = top + 1, right = left + 1;
        v = v > 0.0f ? v : 0.0f;
        h = h > 0.0f ? h : 0.0f;
        if (top >= height - 1) v = (float)(bottom = top = height - 1);
        if (left >= width - 1) h = (float)(right = left = width - 1);
        v -= (float)top;
        h -= (float)left;
        at[0] = top * width + left;
        at[1] = top * width + right;
        at[2] = bottom * width + left;
        at[3] = bottom * width + right;
        weight[0] = (1.0f - v) * (1.0f - h);
        weight[1] = (1.0f - v) * h;
        weight[2] = v * (1.0f - h);
        weight[3] = v * h;
    }
    for (k = 0; k < 4; k++) {
        const float part = weight[k] * x[at[k]];
        sum += part;
        if ((!any && k == 0) || part > most) most = part;
    }
    return largest ? most : sum;
}

static int32_t micro_samples(const micro_aligning *p, float cell)
{
    if (p->samples > 0) return p->samples;
    if (!(cell > 0.0f)) return 0;
    return cell < 4096.0f ? (int32_t)ceilf(cell) : 4096;
}

/* Means, or the largest, of samples in the cells of regions [regions, 4] (x y x y) of images [images, channels, height, width]. */
int32_t micro_align_regions_f32(const micro_aligning *p, const float *x, const float *regions, const int64_t *of, float *y)
{
    const float offset = p->half_pixel ? 0.5f : 0.0f;
    int32_t r, c, i, j, s;
    for (r = 0; r < p->regions; r++)
        if (of[r] < 0 || of[r] >= p->images) return 1;
    for (r = 0; r < p->regions; r++, regions += 4) {
        const float left = regions[0] * p->scale - offset, top = regions[1] * p->scale - offset;
        float w = regions[2] * p->scale - offset - left, h = regions[3] * p->scale - offset - top;
        const float *plane = x + (int32_t)of[r] * p->channels * p->height * p->width;
        int32_t down, across;
        if (!p->half_pixel && w < 1.0f) w = 1.0f;
        if (!p->half_pixel && h < 1.0f) h = 1.0f;
        h /= (float)p->out_height;
        w /= (float)p->out_width;
        down = micro_samples(p, h);
        across = micro_samples(p, w);
        for (c = 0; c < p->channels; c++, plane += p->height * p->width)
            for (i = 0; i < p->out_height; i++)
                for (j = 0; j < p->out_width; j++) {
                    float found = 0.0f;
                    for (s = 0; s < down * across; s++) {
                        const float v = top + (float)i * h + ((float)(s / across) + 0.5f) * h / (float)down;
                        const float u = left + (float)j * w + ((float)(s % across) + 0.5f) * w / (float)across;
                        const float one = micro_between_four(plane, v, u, p->height, p->width, p->largest, s > 0, found);
                        found = p->largest ? one : found + one;
                    }
                    *y++ = p->largest || down * across < 2 ? found : found / (float)(down * across);
                }
    }
    return 0;
}

typedef struct {
    int32_t batch, channels, height, width, outputs, out_height, out_width;
    int32_t kernel_height, kernel_width, stride_height, stride_width, pad_top, pad_left, dilation_height, dilation_width;
    int32_t group, offset_group;
} micro_deformed;

/* Elements of a plane between four, those outside are 0. */
static float micro_between(const float *plane, float v, float u, int32_t height, int32_t width)
{
    const float top = floorf(v), left = floorf(u);
    float sum = 0.0f;
    int32_t k;
    if (!(v > -1.0f && v < (float)height && u > -1.0f && u < (float)width)) return 0.0f;
    for (k = 0; k < 4; k++) {
        const int32_t row = (int32_t)top + k / 2, column = (int32_t)left + k % 2;
        if (row < 0 || row >= height || column < 0 || column >= width) continue;
        sum += (k / 2 ? v - top : 1.0f - (v - top)) * (k % 2 ? u - left : 1.0f - (u - left)) * plane[row * width + column];
    }
    return sum;
}

/* A convolution with the channels first whose taps lie off their places: offsets [batch, offset groups * taps * 2, places], factors alike or none. */
void micro_conv_deformed_f32(const micro_deformed *p, const float *x, const float *w, const float *offsets, const float *bias, const float *mask, float *y)
{
    const int32_t taps = p->kernel_height * p->kernel_width, places = p->out_height * p->out_width, depth = p->channels / p->group;
    int32_t n, o, i, k, t;
    for (n = 0; n < p->batch; n++, x += p->channels * p->height * p->width)
        for (o = 0; o < p->outputs; o++)
            for (i = 0; i < places; i++) {
                float sum = bias ? bias[o] : 0.0f;
                for (k = 0; k < depth; k++) {
                    const int32_t c = o / (p->outputs / p->group) * depth + k, group = n * p->offset_group + c / (p->channels / p->offset_group);
                    for (t = 0; t < taps; t++) {
                        const float *offset = offsets + (group * taps + t) * 2 * places + i;
                        const int32_t row = i / p->out_width * p->stride_height - p->pad_top + t / p->kernel_width * p->dilation_height;
                        const int32_t column = i % p->out_width * p->stride_width - p->pad_left + t % p->kernel_width * p->dilation_width;
                        const float value = micro_between(x + c * p->height * p->width, (float)row + offset[0], (float)column + offset[places],
                                                          p->height, p->width);
                        sum += value * (mask ? mask[(group * taps + t) * places + i] : 1.0f) * w[(o * depth + k) * taps + t];
                    }
                }
                *y++ = sum;
            }
}

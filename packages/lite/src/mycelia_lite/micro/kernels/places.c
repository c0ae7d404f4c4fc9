/* Elements by places that are data: int32 or (`wide`) int64, those below 0 count from the end. Functions return 1, and make nothing, where a place
 * is outside. */

static int64_t micro_number(const void *places, int32_t wide, int32_t i)
{
    return wide ? ((const int64_t *)places)[i] : ((const int32_t *)places)[i];
}

/* The place i, which is inside. */
static int32_t micro_place(const void *places, int32_t wide, int32_t i, int32_t size)
{
    const int32_t at = (int32_t)micro_number(places, wide, i);
    return at < 0 ? at + size : at;
}

/* Whether one of `count` places that are `step` apart is outside. */
static int32_t micro_outside(const void *places, int32_t wide, int32_t count, int32_t step, int32_t size)
{
    int32_t i;
    for (i = 0; i < count; i++) {
        const int64_t at = micro_number(places, wide, i * step);
        if (at < -size || at >= size) return 1;
    }
    return 0;
}

typedef struct {
    int32_t batch, outer, size, inner; /* inner: bytes that go as one */
    int32_t count, wide; /* count: of places, for each of the batch */
} micro_gathering;

/* y[b, o, k] = x[b, o, places[b, k]] */
int32_t micro_gather(const micro_gathering *p, const void *x, const void *places, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    int32_t b, o, k;
    if (micro_outside(places, p->wide, p->batch * p->count, 1, p->size)) return 1;
    for (b = 0; b < p->batch; b++)
        for (o = 0; o < p->outer; o++, from += p->size * p->inner)
            for (k = 0; k < p->count; k++, to += p->inner)
                memcpy(to, from + micro_place(places, p->wide, b * p->count + k, p->size) * p->inner, (size_t)p->inner);
    return 0;
}

typedef struct {
    int32_t rows, depth, wide, how; /* depth: numbers of a place */
    int32_t inner, elements; /* inner: elements that go as one; elements: of all */
    int32_t size[8];
    int32_t bytes; /* of an element */
} micro_slices;

static int32_t micro_slices_outside(const micro_slices *p, const void *places)
{
    int32_t d;
    for (d = 0; d < p->depth; d++) {
        const uint8_t *first = (const uint8_t *)places + (p->wide ? 8 : 4) * d;
        if (micro_outside(first, p->wide, p->rows, p->depth, p->size[d])) return 1;
    }
    return 0;
}

/* Where the slice r begins. */
static int32_t micro_slice(const micro_slices *p, const void *places, int32_t r)
{
    int32_t at = 0, d;
    for (d = 0; d < p->depth; d++) at = at * p->size[d] + micro_place(places, p->wide, r * p->depth + d, p->size[d]);
    return at * p->inner;
}

/* The slices of x at the places [rows, depth]. */
int32_t micro_gather_slices(const micro_slices *p, const void *x, const void *places, void *y)
{
    const int32_t bytes = p->inner * p->bytes;
    int32_t r;
    if (micro_slices_outside(p, places)) return 1;
    for (r = 0; r < p->rows; r++)
        memcpy((uint8_t *)y + r * bytes, (const uint8_t *)x + micro_slice(p, places, r) * p->bytes, (size_t)bytes);
    return 0;
}

/* For u8, u16, u32, u64: An element in the place of another one. */
static TYPE micro_joined_SUFFIX(TYPE old, TYPE value, int32_t how)
{
    (void)old;
    (void)how;
    return value;
}

/* For f32, f64, i32, i64: Of an element and a new one the sum (1), difference, product, quotient, the larger or the smaller. */
static TYPE micro_joined_SUFFIX(TYPE old, TYPE value, int32_t how)
{
    switch (how) {
        case 1: return (TYPE)((WRAP)old + (WRAP)value);
        case 2: return (TYPE)((WRAP)old - (WRAP)value);
        case 3: return (TYPE)((WRAP)old * (WRAP)value);
        case 4: return old / value;
        case 5: return old > value || IS_NAN(old) ? old : value;
        default: return old < value || IS_NAN(old) ? old : value;
    }
}

/* For u8, u16, u32, u64, f32, f64, i32, i64: x with its slices at the places [rows, depth] joined with new ones, one after the other. */
int32_t micro_scatter_slices_SUFFIX(const micro_slices *p, const void *x, const void *places, const void *values, void *y)
{
    const TYPE *from = (const TYPE *)values;
    int32_t r, i;
    if (micro_slices_outside(p, places)) return 1;
    memmove(y, x, (size_t)p->elements * sizeof(TYPE));
    for (r = 0; r < p->rows; r++) {
        TYPE *slice = (TYPE *)y + micro_slice(p, places, r);
        for (i = 0; i < p->inner; i++) slice[i] = micro_joined_SUFFIX(slice[i], *from++, p->how);
    }
    return 0;
}

typedef struct {
    int32_t count, elements, axis, extent, wide, how; /* count: of places; extent: of x along the axis */
    int32_t size[8], step[8]; /* of the places; elements of x from one to the next along each axis */
    int32_t bytes; /* of an element */
} micro_elements;

/* The element that the place i names: the same along all axes but one. */
static int32_t micro_element(const micro_elements *p, const void *places, int32_t i)
{
    int32_t at = 0, rest = i, d;
    for (d = 7; d >= 0; d--) {
        const int32_t here = d == p->axis ? micro_place(places, p->wide, i, p->extent) : rest % p->size[d];
        at += here * p->step[d];
        rest /= p->size[d];
    }
    return at;
}

/* y[.., j] = x[.., places[.., j]] */
int32_t micro_gather_elements(const micro_elements *p, const void *x, const void *places, void *y)
{
    int32_t i;
    if (micro_outside(places, p->wide, p->count, 1, p->extent)) return 1;
    for (i = 0; i < p->count; i++)
        memcpy((uint8_t *)y + i * p->bytes, (const uint8_t *)x + micro_element(p, places, i) * p->bytes, (size_t)p->bytes);
    return 0;
}

/* For u8, u16, u32, u64, f32, f64, i32, i64: x with y[.., places[.., j]] joined with values[.., j], one after the other. */
int32_t micro_scatter_elements_SUFFIX(const micro_elements *p, const void *x, const void *places, const void *values, void *y)
{
    const TYPE *from = (const TYPE *)values;
    int32_t i;
    if (micro_outside(places, p->wide, p->count, 1, p->extent)) return 1;
    memmove(y, x, (size_t)p->elements * sizeof(TYPE));
    for (i = 0; i < p->count; i++) {
        TYPE *one = (TYPE *)y + micro_element(p, places, i);
        *one = micro_joined_SUFFIX(*one, from[i], p->how);
    }
    return 0;
}

typedef struct {
    int32_t outer, depth, inner, wide, bytes;
} micro_one_hot;

/* y[o, k, i] is `on` where k is the place [o, i], else `off`; a place outside is nowhere. */
void micro_mark(const micro_one_hot *p, const void *places, const void *on, const void *off, void *y)
{
    uint8_t *to = (uint8_t *)y;
    int32_t o, k, i;
    for (o = 0; o < p->outer; o++)
        for (k = 0; k < p->depth; k++)
            for (i = 0; i < p->inner; i++, to += p->bytes)
                memcpy(to, micro_number(places, p->wide, o * p->inner + i) == k ? on : off, (size_t)p->bytes);
}

typedef struct {
    int32_t matrices, rows, columns, diagonal, upper, bytes;
} micro_triangle;

/* Matrices that are zero above a diagonal, or (`upper`) below it. */
void micro_keep_triangle(const micro_triangle *p, const void *x, void *y)
{
    const uint8_t *from = (const uint8_t *)x;
    uint8_t *to = (uint8_t *)y;
    const int32_t row = p->columns * p->bytes;
    int32_t i;
    for (i = 0; i < p->matrices * p->rows; i++, from += row, to += row) {
        int32_t at = i % p->rows + p->diagonal + (p->upper ? 0 : 1);
        at = (at < 0 ? 0 : at > p->columns ? p->columns : at) * p->bytes;
        memmove(to, from, (size_t)row);
        if (p->upper) memset(to, 0, (size_t)at);
        else memset(to + at, 0, (size_t)(row - at));
    }
}

typedef struct {
    int32_t rows, inner; /* inner: bytes that go as one */
    int32_t along, along_step, batch, batch_step; /* sizes of two axes, and how many rows are from one to the next */
} micro_reversal;

/* The first elements along an axis the other way round, lengths[b] of them. */
int32_t micro_reverse(const micro_reversal *p, const void *x, const int64_t *lengths, void *y)
{
    int32_t i;
    for (i = 0; i < p->batch; i++)
        if (lengths[i] < 0 || lengths[i] > p->along) return 1;
    for (i = 0; i < p->rows; i++) {
        const int32_t at = i / p->along_step % p->along, length = (int32_t)lengths[i / p->batch_step % p->batch];
        const int32_t other = at < length ? i + (length - 1 - 2 * at) * p->along_step : i;
        memcpy((uint8_t *)y + i * p->inner, (const uint8_t *)x + other * p->inner, (size_t)p->inner);
    }
    return 0;
}

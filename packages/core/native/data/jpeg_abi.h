// The part of libjpeg's binary interface, version 62, that decoding needs: the layouts that libjpeg-turbo keeps for its
// library libjpeg.so.62. Written from the interface's documentation, so that no header is needed to build;
// jpeg_CreateDecompress compares the version and the size of the struct with its own and refuses others.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mycelia::data::jpeg {

constexpr int kVersion = 62;
constexpr int kRgb = 2;  // of J_COLOR_SPACE
constexpr int kHeaderOk = 1;  // of jpeg_read_header

struct Decompress;

struct ErrorManager {
  void (*error_exit)(Decompress*);
  void (*emit_message)(Decompress*, int level);
  void (*output_message)(Decompress*);
  void (*format_message)(Decompress*, char* buffer);
  void (*reset_error_mgr)(Decompress*);
  int msg_code;
  union {
    int i[8];
    char s[80];
  } msg_parm;
  int trace_level;
  long num_warnings;
  const char* const* message_table;
  int last_message;
  const char* const* addon_table;
  int first_addon, last_addon;
};

struct Source {
  const uint8_t* next_input_byte;
  size_t bytes_in_buffer;
  void (*init_source)(Decompress*);
  int (*fill_input_buffer)(Decompress*);
  void (*skip_input_data)(Decompress*, long count);
  int (*resync_to_restart)(Decompress*, int desired);
  void (*term_source)(Decompress*);
};

struct Decompress {
  ErrorManager* err;
  void *mem, *progress, *client_data;
  int is_decompressor, global_state;
  Source* src;
  unsigned image_width, image_height;
  int num_components, jpeg_color_space, out_color_space;
  unsigned scale_num, scale_denom;
  double output_gamma;
  int buffered_image, raw_data_out, dct_method, do_fancy_upsampling, do_block_smoothing, quantize_colors;
  int dither_mode, two_pass_quantize, desired_number_of_colors;
  int enable_1pass_quant, enable_external_quant, enable_2pass_quant;
  unsigned output_width, output_height;
  int out_color_components, output_components, rec_outbuf_height, actual_number_of_colors;
  void* colormap;
  unsigned output_scanline;
  int input_scan_number;
  unsigned input_imcu_row;
  int output_scan_number;
  unsigned output_imcu_row;
  void* coef_bits;
  void *quant_tables[4], *dc_tables[4], *ac_tables[4];
  int data_precision;
  void* components;
  int progressive_mode, arith_code;
  uint8_t arith_dc_l[16], arith_dc_u[16], arith_ac_k[16];
  unsigned restart_interval;
  int saw_jfif;
  uint8_t jfif_major, jfif_minor, density_unit;
  uint16_t x_density, y_density;
  int saw_adobe;
  uint8_t adobe_transform;
  int ccir601;
  void* markers;
  int max_h_samp, max_v_samp, min_dct_size;
  unsigned total_imcu_rows;
  void* sample_range_limit;
  int comps_in_scan;
  void* cur_components[4];
  unsigned mcus_per_row, mcu_rows_in_scan;
  int blocks_in_mcu, mcu_membership[10];
  int ss, se, ah, al, unread_marker;
  void *master, *main, *coef, *post, *inputctl, *marker, *entropy, *idct, *upsample, *cconvert, *cquantize;
};

#if defined(__LP64__)
static_assert(sizeof(Source) == 56);
static_assert(sizeof(ErrorManager) == 168 && offsetof(ErrorManager, num_warnings) == 128);
static_assert(offsetof(Decompress, src) == 40 && offsetof(Decompress, out_color_space) == 64);
static_assert(offsetof(Decompress, do_fancy_upsampling) == 100 && offsetof(Decompress, output_width) == 136);
static_assert(offsetof(Decompress, output_scanline) == 168 && offsetof(Decompress, data_precision) == 296);
static_assert(offsetof(Decompress, restart_interval) == 368 && offsetof(Decompress, saw_adobe) == 384);
static_assert(offsetof(Decompress, total_imcu_rows) == 420 && sizeof(Decompress) == 632);
#endif

}  // namespace mycelia::data::jpeg

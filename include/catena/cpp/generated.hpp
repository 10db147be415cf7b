// SPDX-License-Identifier: Apache-2.0
//
// Every op, object and options struct of Catena for C++17. dev/interface writes this file from the
// public headers, and docs/reference explains the functions under their names in C. Include
// catena/catena.hpp.
#ifndef CATENA_CPP_GENERATED_HPP
#define CATENA_CPP_GENERATED_HPP

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <catena/catena.h>
#include <catena/cpp/error.hpp>
#include <catena/cpp/handle.hpp>
#include <catena/cpp/source.hpp>
#include <catena/cpp/support.hpp>
#include <catena/cpp/tensor.hpp>
#include <catena/cpp/views.hpp>

// clang-format off
namespace catena {

class CommRef;
class RetainedRef;
class DatasetRef;
class SamplerRef;
class LoaderRef;
class DistChainRef;
class DistGridRef;
class GeneratorRef;
class WeightsRef;
class ModuleRef;
class OptimRef;
class ContextRef;
class VarRef;
class TokenizerRef;
class TrainerRef;
class StepRef;
class MemoryRef;
class Comm;
class Retained;
class Dataset;
class Sampler;
class Loader;
class DistChain;
class DistGrid;
class Generator;
class Weights;
class Module;
class Optim;
class Context;
class Var;
class Tokenizer;
class Trainer;
class Memory;

class CommRef : public Ref<ctn_comm> {
public:
    using Ref::Ref;
    int rank() const;
    int size() const;
    int nodes() const;
    int node() const;
    int local_rank() const;
    int local_size() const;
    const char *transport() const;
    const char *algorithm() const;
    void set_algorithm(Text name) const;
    void allreduce(void *buf, int64_t count, ctn_dtype type) const;
    void broadcast(OutBytes buf, int root) const;
    void allgather(Bytes mine, void *all) const;
    void gather(Bytes mine, void *all, int root) const;
    void scatter(const void *all, OutBytes mine, int root) const;
    void send_bytes(Bytes buf, int to) const;
    size_t recv_size(int from) const;
    void recv_bytes(OutBytes buf, int from) const;
    void barrier() const;
    void agree(Text text) const;
    void fail(Text message) const;
    void break_group(Text message) const;
    int survives() const;
    int lost() const;
    Comm shrink(Maybe<ctn_comm_opt> opt = {}) const;
    Comm again(Maybe<ctn_comm_opt> opt = {}) const;
    Comm split(int color, int key, Maybe<ctn_comm_opt> opt = {}) const;
    ctn_comm_stats get_stats() const;
};

class RetainedRef : public Ref<ctn_retained> {
public:
    using Ref::Ref;
    [[nodiscard]] Tensor value(Where at = Where::here()) const;
};

class DatasetRef : public Ref<ctn_dataset> {
public:
    using Ref::Ref;
    int64_t count() const;
    int fields() const;
    const ctn_field *field(int f) const;
    int64_t length(int f, int64_t index) const;
    void sample(const ctn_sample &s, Span<void *const> dst) const;
    void sample_at(int64_t index, Span<void *const> dst) const;
    std::string name(int64_t index) const;
    const char *class_name(int64_t k) const;
    int64_t classes() const;
    int resizes() const;
    Dataset slice(int64_t first, int64_t count) const;
    Dataset subset(Span<const int64_t> index) const;
    Dataset mask(TokenizerRef t, Maybe<ctn_mask_opt> opt = {}) const;
    void moments(int field, Span<double> mean, Span<double> std) const;
};

class SamplerRef : public Ref<ctn_sampler> {
public:
    using Ref::Ref;
    void shard(int rank, int size) const;
    int64_t count() const;
    int64_t total() const;
    int64_t index(uint64_t epoch, uint64_t position) const;
    ctn_sampler_state get_state() const;
    void set_state(const ctn_sampler_state &state) const;
};

class LoaderRef : public Ref<ctn_loader> {
public:
    using Ref::Ref;
    bool next(ctn_batch &b) const;
    ctn_loader_stats get_stats() const;
    ctn_sampler_state get_state() const;
    void set_state(const ctn_sampler_state &state) const;
};

class DistChainRef : public Ref<ctn_dist_chain> {
public:
    using Ref::Ref;
    void add(ModuleRef m, Where at = Where::here()) const;
    void recv(int rank, ctn_dtype dtype, Shape dims, Where at = Where::here()) const;
    void send(int rank, Where at = Where::here()) const;
    [[nodiscard]] Tensor call(const Tensor &x, int64_t rows, Where at = Where::here()) const;
};

class DistGridRef : public Ref<ctn_dist_grid> {
public:
    using Ref::Ref;
    int64_t length(int dimension, int64_t length) const;
    int64_t begin(int dimension, int64_t length) const;
};

class GeneratorRef : public Ref<ctn_generator> {
public:
    using Ref::Ref;
    void start(Span<const int32_t *const> prompt, Span<const int64_t> length,
            Span<int32_t> next) const;
    bool next(Span<const int32_t> tokens, Span<int32_t> next) const;
    int64_t sequences() const;
    const float *logits() const;
};

class WeightsRef : public Ref<ctn_weights> {
public:
    using Ref::Ref;
    const char *format() const;
    int64_t arrays() const;
    ctn_weights_array get_array(int64_t i) const;
    int64_t find(Text name) const;
    void read(int64_t i, ctn_dtype dtype, OutBytes dst) const;
};

class ModuleRef : public Ref<ctn_module> {
public:
    using Ref::Ref;
    void save(Text path, Maybe<ctn_weights_save_opt> opt = {}) const;
    void load(Text path, Maybe<ctn_weights_opt> opt = {}) const;
    ModuleRef add(Text name, Module child) const;
    int children() const;
    ModuleRef child(int i) const;
    ContextRef context() const;
    ctn_predicts predicts() const;
    std::optional<int32_t> ends(int room) const;
    VarRef param(Text name, ctn_dtype dtype, Shape dims, Maybe<ctn_init> init = {}) const;
    VarRef state(Text name, ctn_dtype dtype, Shape dims, Maybe<ctn_init> init = {}) const;
    void tie(Text name, VarRef v) const;
    [[nodiscard]] Tensor operator()(const Tensor &x, Where at = Where::here()) const;
    ctn_tensors call_multi(ctn_tensors x, Where at = Where::here()) const;
    void set_recompute(int on) const;
    const char *source() const;
    ctn_vars params() const;
    VarRef find(Text name) const;
    int set_trainable(Text pattern, int on) const;
    int freeze_statistics(Text pattern, int on) const;
    Module copy() const;
};

class OptimRef : public Ref<ctn_optim> {
public:
    using Ref::Ref;
    void backward(const Tensor &loss, Where at = Where::here()) const;
    void step(Where at = Where::here()) const;
    int group(Text pattern, Maybe<ctn_group_opt> opt = {}) const;
    double lr() const;
    void set_lr(double lr) const;
    double hyper(Text name) const;
    void set_hyper(Text name, double value) const;
    void set_clip(double max) const;
    void set_clip_value(double max) const;
    void set_lasso(double rate) const;
    void set_noise(double eta, double gamma, uint64_t seed) const;
    void set_skip_nonfinite(int on) const;
    double norm() const;
    int64_t steps() const;
    void set_loss_scale(Maybe<ctn_loss_scale_opt> opt = {}) const;
    double loss_scale() const;
    int64_t skipped() const;
    void set_schedule(Maybe<ctn_sched_opt> s = {}) const;
};

class ContextRef : public Ref<ctn_context> {
public:
    using Ref::Ref;
    int threads() const;
    ctn_dtype float_type() const;
    ctn_context_state get_state() const;
    void set_state(const ctn_context_state &in) const;
    void set_share(const ctn_share &share) const;
    int set_training(int on) const;
    int set_grad(int on) const;
    int training() const;
    void flush() const;
    ctn_plan_stats get_stats() const;
    std::string plan_text() const;
    std::string decisions_text() const;
    void write_trace(Text path) const;
    void set_profile(int on) const;
};

class VarRef : public Ref<ctn_var> {
public:
    using Ref::Ref;
    const char *name() const;
    const ctn_desc *desc() const;
    ctn_var_kind kind_of() const;
    void set_trainable(int on) const;
    int trainable() const;
    ContextRef context() const;
    void read(OutBytes dst) const;
    void write(Bytes src) const;
    void grad(OutBytes dst) const;
    [[nodiscard]] Tensor use(Where at = Where::here()) const;
    void assign(const Tensor &t, Where at = Where::here()) const;
    void init(Maybe<ctn_init> init = {}) const;
};

class TokenizerRef : public Ref<ctn_tokenizer> {
public:
    using Ref::Ref;
    std::vector<int32_t> encode(std::string_view text) const;
    std::string decode(Span<const int32_t> ids) const;
    std::string decode_next(ctn_decode_state &state, int32_t id) const;
    int64_t tokens() const;
    std::string_view token(int64_t id) const;
    int32_t id(std::string_view text) const;
    int special(int64_t id) const;
    int32_t end() const;
    std::optional<int32_t> around(int after, int room) const;
    std::string chat(std::string_view messages, Maybe<ctn_chat_opt> opt = {}) const;
};

class TrainerRef : public Ref<ctn_trainer> {
public:
    using Ref::Ref;
    void add_optim(Text name, OptimRef opt, ctn_loss_fn loss, void *self = nullptr) const;
    void run() const;
    void stop(const char *why = nullptr) const;
    const char *stopped() const;
    ctn_progress progress() const;
    OptimRef optim() const;
    LoaderRef loader() const;
    ModuleRef net() const;
    const char *out() const;
    ContextRef context() const;
    void observe(Text name, double value) const;
    std::optional<double> value(Text name) const;
    const char *name(int i) const;
    int64_t rows() const;
    double row_value(int64_t row, Text name) const;
    ctn_progress row_progress(int64_t row) const;
    void extend(const ctn_extension &e) const;
    void save(Text dir) const;
    void load(Text dir) const;
    void recall(MemoryRef m) const;
};

class StepRef : public Ref<ctn_step> {
public:
    using Ref::Ref;
    ContextRef context() const;
    const ctn_batch *batch() const;
    [[nodiscard]] Tensor input(int f, Where at = Where::here()) const;
    void report(Text name, const Tensor &value) const;
};

class MemoryRef : public Ref<ctn_memory> {
public:
    using Ref::Ref;
};

class Comm : public Owner<CommRef, ctn_comm_free> {
public:
    using Owner::Owner;
    explicit Comm(Maybe<ctn_comm_opt> opt = {});
};

class Retained : public Owner<RetainedRef, ctn_retained_free> {
public:
    using Owner::Owner;
};

class Dataset : public Owner<DatasetRef, ctn_dataset_free> {
public:
    using Owner::Owner;
};

class Sampler : public Owner<SamplerRef, ctn_sampler_free> {
public:
    using Owner::Owner;
};

class Loader : public Owner<LoaderRef, ctn_loader_free> {
public:
    using Owner::Owner;
    Loader() = default;
    explicit Loader(DatasetRef ds, SamplerRef s, Maybe<ctn_loader_opt> opt = {});
};

class DistChain : public Owner<DistChainRef, ctn_dist_chain_free> {
public:
    using Owner::Owner;
    DistChain() = default;
    explicit DistChain(ContextRef ctx, CommRef c);
};

class DistGrid : public Owner<DistGridRef, ctn_dist_grid_free> {
public:
    using Owner::Owner;
    DistGrid() = default;
    explicit DistGrid(CommRef c, Shape ranks, unsigned int periodic);
};

class Generator : public Owner<GeneratorRef, ctn_generator_free> {
public:
    using Owner::Owner;
    Generator() = default;
    explicit Generator(ModuleRef m, Maybe<ctn_generator_opt> opt = {});
};

class Weights : public Owner<WeightsRef, ctn_weights_free> {
public:
    using Owner::Owner;
    Weights() = default;
    explicit Weights(Text path);
};

class Module : public Owner<ModuleRef, ctn_module_free> {
public:
    using Owner::Owner;
};

class Optim : public Owner<OptimRef, ctn_optim_free> {
public:
    using Owner::Owner;
};

class Context : public Owner<ContextRef, ctn_context_free> {
public:
    using Owner::Owner;
    explicit Context(Maybe<ctn_context_opt> opt = {});
};

class Var : public Owner<VarRef, ctn_var_free> {
public:
    using Owner::Owner;
    Var() = default;
    explicit Var(ContextRef ctx, Text name, ctn_var_kind kind, ctn_dtype dtype, Shape dims);
};

class Tokenizer : public Owner<TokenizerRef, ctn_tokenizer_free> {
public:
    using Owner::Owner;
    Tokenizer() = default;
    explicit Tokenizer(Text path, Maybe<ctn_tokenizer_opt> opt = {});
};

class Memory : public Owner<MemoryRef, ctn_memory_free> {
public:
    using Owner::Owner;
    explicit Memory();
};

// ---- options

struct CommOpt : detail::Sized<ctn_comm_opt> {
    CommOpt &algorithm(Text v) { Struct::algorithm = v.get(); return *this; }
    CommOpt &wire(ctn_dtype v) { Struct::wire = v; return *this; }
    CommOpt &rows(int v) { Struct::rows = v; return *this; }
    CommOpt &segment(int64_t v) { Struct::segment = v; return *this; }
    CommOpt &window(int v) { Struct::window = v; return *this; }
};

struct ContextOpt : detail::Sized<ctn_context_opt> {
    ContextOpt &threads(int v) { Struct::threads = v; return *this; }
    ContextOpt &seed(uint64_t v) { Struct::seed = v; return *this; }
    ContextOpt &mode(ctn_mode v) { Struct::mode = v; return *this; }
    ContextOpt &precision(ctn_precision v) { Struct::precision = v; return *this; }
    ContextOpt &slow_precision(int v) { Struct::slow_precision = v; return *this; }
    ContextOpt &no_fuse(int v) { Struct::no_fuse = v; return *this; }
    ContextOpt &max_plans(int64_t v) { Struct::max_plans = v; return *this; }
    ContextOpt &max_plan_bytes(int64_t v) { Struct::max_plan_bytes = v; return *this; }
    ContextOpt &cores(const int *v) { Struct::cores = v; return *this; }
    ContextOpt &ncores(int v) { Struct::ncores = v; return *this; }
    ContextOpt &spans(int64_t v) { Struct::spans = v; return *this; }
};

struct IdxOpt : detail::Sized<ctn_idx_opt> {
    IdxOpt &raw(int v) { Struct::raw = v; return *this; }
    IdxOpt &shaped(int v) { Struct::shaped = v; return *this; }
};

struct CifarOpt : detail::Sized<ctn_cifar_opt> {
    CifarOpt &raw(int v) { Struct::raw = v; return *this; }
    CifarOpt &mean(Span<const double> v) { detail::fill(Struct::mean, v); return *this; }
    CifarOpt &std(Span<const double> v) { detail::fill(Struct::std, v); return *this; }
    CifarOpt &coarse(int v) { Struct::coarse = v; return *this; }
};

struct MixOpt : detail::Sized<ctn_mix_opt> {
    MixOpt &mixup(double v) { Struct::mixup = v; return *this; }
    MixOpt &cutmix(double v) { Struct::cutmix = v; return *this; }
    MixOpt &classes(int64_t v) { Struct::classes = v; return *this; }
};

struct LoaderOpt : detail::Sized<ctn_loader_opt> {
    LoaderOpt &batch(int64_t v) { Struct::batch = v; return *this; }
    LoaderOpt &threads(int v) { Struct::threads = v; return *this; }
    LoaderOpt &depth(int v) { Struct::depth = v; return *this; }
    LoaderOpt &drop_last(int v) { Struct::drop_last = v; return *this; }
    LoaderOpt &skip(double v) { Struct::skip = v; return *this; }
    LoaderOpt &stall_s(double v) { Struct::stall_s = v; return *this; }
    LoaderOpt &cores(const int *v) { Struct::cores = v; return *this; }
    LoaderOpt &ncores(int v) { Struct::ncores = v; return *this; }
    LoaderOpt &mix(const ctn_mix_opt &v) { Struct::mix = &v; return *this; }
    LoaderOpt &pad_multiple(int64_t v) { Struct::pad_multiple = v; return *this; }
    LoaderOpt &pad_value(Span<const double> v) { detail::fill(Struct::pad_value, v); return *this; }
    LoaderOpt &total(int64_t v) { Struct::total = v; return *this; }
    LoaderOpt &block(int64_t v) { Struct::block = v; return *this; }
    LoaderOpt &join(int v) { Struct::join = v; return *this; }
    LoaderOpt &join_index(int v) { Struct::join_index = v; return *this; }
    LoaderOpt &sizes(const int64_t *v) { Struct::sizes = v; return *this; }
    LoaderOpt &nsizes(int v) { Struct::nsizes = v; return *this; }
    LoaderOpt &size_every(int64_t v) { Struct::size_every = v; return *this; }
};

struct FilesOpt : detail::Sized<ctn_files_opt> {
    FilesOpt &keep_f64(int v) { Struct::keep_f64 = v; return *this; }
    FilesOpt &offsets(const char *const *v) { Struct::offsets = v; return *this; }
    FilesOpt &fill(int v) { Struct::fill = v; return *this; }
    FilesOpt &fill_value(double v) { Struct::fill_value = v; return *this; }
};

struct CsvOpt : detail::Sized<ctn_csv_opt> {
    CsvOpt &separator(Text v) { Struct::separator = v.get(); return *this; }
    CsvOpt &no_header(int v) { Struct::no_header = v; return *this; }
    CsvOpt &ninputs(int v) { Struct::ninputs = v; return *this; }
    CsvOpt &ntargets(int v) { Struct::ntargets = v; return *this; }
    CsvOpt &inputs(const char *const *v) { Struct::inputs = v; return *this; }
    CsvOpt &targets(const char *const *v) { Struct::targets = v; return *this; }
    CsvOpt &keep_f64(int v) { Struct::keep_f64 = v; return *this; }
    CsvOpt &classes(int v) { Struct::classes = v; return *this; }
    CsvOpt &categories(int v) { Struct::categories = v; return *this; }
    CsvOpt &text_target(int v) { Struct::text_target = v; return *this; }
    CsvOpt &fill(int v) { Struct::fill = v; return *this; }
    CsvOpt &fill_value(double v) { Struct::fill_value = v; return *this; }
    CsvOpt &like(DatasetRef v) { Struct::like = v.get(); return *this; }
};

struct TokensOpt : detail::Sized<ctn_tokens_opt> {
    TokensOpt &length(int64_t v) { Struct::length = v; return *this; }
    TokensOpt &stride(int64_t v) { Struct::stride = v; return *this; }
    TokensOpt &bytes(int v) { Struct::bytes = v; return *this; }
};

struct MaskOpt : detail::Sized<ctn_mask_opt> {
    MaskOpt &chosen(double v) { Struct::chosen = v; return *this; }
    MaskOpt &masked(double v) { Struct::masked = v; return *this; }
    MaskOpt &random(double v) { Struct::random = v; return *this; }
    MaskOpt &mask(Text v) { Struct::mask = v.get(); return *this; }
    MaskOpt &begin(Text v) { Struct::begin = v.get(); return *this; }
    MaskOpt &end(Text v) { Struct::end = v.get(); return *this; }
};

struct DistOpt : detail::Sized<ctn_dist_opt> {
    DistOpt &bucket(int64_t v) { Struct::bucket = v; return *this; }
    DistOpt &shard(int v) { Struct::shard = v; return *this; }
    DistOpt &progress(int v) { Struct::progress = v; return *this; }
    DistOpt &when(int v) { Struct::when = v; return *this; }
    DistOpt &defer(int v) { Struct::defer = v; return *this; }
    DistOpt &exact(int64_t v) { Struct::exact = v; return *this; }
};

struct DistHaloOpt : detail::Sized<ctn_dist_halo_opt> {
    DistHaloOpt &before(Span<const int64_t> v) { detail::fill(Struct::before, v); return *this; }
    DistHaloOpt &after(Span<const int64_t> v) { detail::fill(Struct::after, v); return *this; }
};

struct GeneratorOpt : detail::Sized<ctn_generator_opt> {
    GeneratorOpt &room(int64_t v) { Struct::room = v; return *this; }
    GeneratorOpt &temperature(double v) { Struct::temperature = v; return *this; }
    GeneratorOpt &top_k(int64_t v) { Struct::top_k = v; return *this; }
    GeneratorOpt &top_p(double v) { Struct::top_p = v; return *this; }
    GeneratorOpt &seed(uint64_t v) { Struct::seed = v; return *this; }
    GeneratorOpt &repetition_penalty(double v) { Struct::repetition_penalty = v; return *this; }
};

struct ImageOpt : detail::Sized<ctn_image_opt> {
    ImageOpt &height(int64_t v) { Struct::height = v; return *this; }
    ImageOpt &width(int64_t v) { Struct::width = v; return *this; }
    ImageOpt &crop(ctn_crop v) { Struct::crop = v; return *this; }
    ImageOpt &resize(int64_t v) { Struct::resize = v; return *this; }
    ImageOpt &scale(Span<const double> v) { detail::fill(Struct::scale, v); return *this; }
    ImageOpt &ratio(Span<const double> v) { detail::fill(Struct::ratio, v); return *this; }
    ImageOpt &pad(int64_t v) { Struct::pad = v; return *this; }
    ImageOpt &flip(int v) { Struct::flip = v; return *this; }
    ImageOpt &brightness(double v) { Struct::brightness = v; return *this; }
    ImageOpt &contrast(double v) { Struct::contrast = v; return *this; }
    ImageOpt &saturation(double v) { Struct::saturation = v; return *this; }
    ImageOpt &hue(double v) { Struct::hue = v; return *this; }
    ImageOpt &mean(Span<const double> v) { detail::fill(Struct::mean, v); return *this; }
    ImageOpt &std(Span<const double> v) { detail::fill(Struct::std, v); return *this; }
    ImageOpt &raw(int v) { Struct::raw = v; return *this; }
    ImageOpt &channels_last(int v) { Struct::channels_last = v; return *this; }
    ImageOpt &gray(int v) { Struct::gray = v; return *this; }
    ImageOpt &randaugment(int v) { Struct::randaugment = v; return *this; }
    ImageOpt &magnitude(double v) { Struct::magnitude = v; return *this; }
};

struct SegmentationOpt : detail::Sized<ctn_segmentation_opt> {
    SegmentationOpt &image(const ctn_image_opt &v) { Struct::image = &v; return *this; }
    SegmentationOpt &ignore(int64_t v) { Struct::ignore = v; return *this; }
};

struct ShardsOpt : detail::Sized<ctn_shards_opt> {
    ShardsOpt &image(const ctn_image_opt &v) { Struct::image = &v; return *this; }
    ShardsOpt &index_dir(Text v) { Struct::index_dir = v.get(); return *this; }
    ShardsOpt &stage(Text v) { Struct::stage = v.get(); return *this; }
    ShardsOpt &index(const void *v) { Struct::index = v; return *this; }
    ShardsOpt &index_bytes(size_t v) { Struct::index_bytes = v; return *this; }
};

struct PackOpt : detail::Sized<ctn_pack_opt> {
    PackOpt &shard_bytes(int64_t v) { Struct::shard_bytes = v; return *this; }
    PackOpt &seed(uint64_t v) { Struct::seed = v; return *this; }
    PackOpt &keep_order(int v) { Struct::keep_order = v; return *this; }
    PackOpt &progress(void (*v)(void *, int64_t, int64_t)) { Struct::progress = v; return *this; }
    PackOpt &user(void *v) { Struct::user = v; return *this; }
};

struct WeightsSaveOpt : detail::Sized<ctn_weights_save_opt> {
    WeightsSaveOpt &only(const char *const *v) { Struct::only = v; return *this; }
    WeightsSaveOpt &no_sync(int v) { Struct::no_sync = v; return *this; }
};

struct WeightsOpt : detail::Sized<ctn_weights_opt> {
    WeightsOpt &partial(int v) { Struct::partial = v; return *this; }
    WeightsOpt &rename(const char *const *v) { Struct::rename = v; return *this; }
    WeightsOpt &map(const char *(*v)(void *, const char *, char *,
            size_t)) { Struct::map = v; return *this; }
    WeightsOpt &user(void *v) { Struct::user = v; return *this; }
    WeightsOpt &new_head(int v) { Struct::new_head = v; return *this; }
    WeightsOpt &fresh(void (*v)(void *, const char *, const ctn_desc *,
            const ctn_desc *)) { Struct::fresh = v; return *this; }
};

struct Init : detail::Sized<ctn_init> {
    Init &kind(ctn_init_kind v) { Struct::kind = v; return *this; }
    Init &value(double v) { Struct::value = v; return *this; }
    Init &mean(double v) { Struct::mean = v; return *this; }
    Init &std(double v) { Struct::std = v; return *this; }
    Init &low(double v) { Struct::low = v; return *this; }
    Init &high(double v) { Struct::high = v; return *this; }
    Init &gain(double v) { Struct::gain = v; return *this; }
    Init &fan_in(int64_t v) { Struct::fan_in = v; return *this; }
    Init &fan_out(int64_t v) { Struct::fan_out = v; return *this; }
};

struct LinearOpt : detail::Sized<ctn_linear_opt> {
    LinearOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
    LinearOpt &weight(const ctn_init &v) { Struct::weight = &v; return *this; }
    LinearOpt &bias(const ctn_init &v) { Struct::bias = &v; return *this; }
};

struct ConvModuleOpt : detail::Sized<ctn_conv_module_opt> {
    ConvModuleOpt &stride(Span<const int64_t> v) { detail::fill(Struct::stride, v); return *this; }
    ConvModuleOpt &pad(Span<const int64_t> v) { detail::fill(Struct::pad, v); return *this; }
    ConvModuleOpt &pad_end(Span<const int64_t> v) { detail::fill(Struct::pad_end,
            v); return *this; }
    ConvModuleOpt &dilation(Span<const int64_t> v) { detail::fill(Struct::dilation,
            v); return *this; }
    ConvModuleOpt &groups(int64_t v) { Struct::groups = v; return *this; }
    ConvModuleOpt &out_pad(Span<const int64_t> v) { detail::fill(Struct::out_pad,
            v); return *this; }
    ConvModuleOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
    ConvModuleOpt &weight(const ctn_init &v) { Struct::weight = &v; return *this; }
    ConvModuleOpt &bias(const ctn_init &v) { Struct::bias = &v; return *this; }
    ConvModuleOpt &pad_mode(ctn_pad_mode v) { Struct::pad_mode = v; return *this; }
};

struct SpectralConvOpt : detail::Sized<ctn_spectral_conv_opt> {
    SpectralConvOpt &weight(const ctn_init &v) { Struct::weight = &v; return *this; }
};

struct BatchNormModuleOpt : detail::Sized<ctn_batch_norm_module_opt> {
    BatchNormModuleOpt &eps(double v) { Struct::eps = v; return *this; }
    BatchNormModuleOpt &momentum(double v) { Struct::momentum = v; return *this; }
    BatchNormModuleOpt &no_affine(int v) { Struct::no_affine = v; return *this; }
    BatchNormModuleOpt &weight(const ctn_init &v) { Struct::weight = &v; return *this; }
    BatchNormModuleOpt &bias(const ctn_init &v) { Struct::bias = &v; return *this; }
};

struct BatchRenormModuleOpt : detail::Sized<ctn_batch_renorm_module_opt> {
    BatchRenormModuleOpt &eps(double v) { Struct::eps = v; return *this; }
    BatchRenormModuleOpt &momentum(double v) { Struct::momentum = v; return *this; }
    BatchRenormModuleOpt &rmax(double v) { Struct::rmax = v; return *this; }
    BatchRenormModuleOpt &dmax(double v) { Struct::dmax = v; return *this; }
    BatchRenormModuleOpt &no_affine(int v) { Struct::no_affine = v; return *this; }
    BatchRenormModuleOpt &weight(const ctn_init &v) { Struct::weight = &v; return *this; }
    BatchRenormModuleOpt &bias(const ctn_init &v) { Struct::bias = &v; return *this; }
};

struct NormOpt : detail::Sized<ctn_norm_opt> {
    NormOpt &eps(double v) { Struct::eps = v; return *this; }
    NormOpt &no_affine(int v) { Struct::no_affine = v; return *this; }
    NormOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
};

struct RnnModuleOpt : detail::Sized<ctn_rnn_module_opt> {
    RnnModuleOpt &layers(int v) { Struct::layers = v; return *this; }
    RnnModuleOpt &bidirectional(int v) { Struct::bidirectional = v; return *this; }
    RnnModuleOpt &batch_first(int v) { Struct::batch_first = v; return *this; }
    RnnModuleOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
    RnnModuleOpt &dropout(double v) { Struct::dropout = v; return *this; }
    RnnModuleOpt &projection(int64_t v) { Struct::projection = v; return *this; }
    RnnModuleOpt &relu(int v) { Struct::relu = v; return *this; }
    RnnModuleOpt &composed(int v) { Struct::composed = v; return *this; }
};

struct GraphConvOpt : detail::Sized<ctn_graph_conv_opt> {
    GraphConvOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
};

struct GraphAttentionOpt : detail::Sized<ctn_graph_attention_opt> {
    GraphAttentionOpt &heads(int64_t v) { Struct::heads = v; return *this; }
    GraphAttentionOpt &mean(int v) { Struct::mean = v; return *this; }
    GraphAttentionOpt &slope(double v) { Struct::slope = v; return *this; }
    GraphAttentionOpt &dropout(double v) { Struct::dropout = v; return *this; }
    GraphAttentionOpt &no_bias(int v) { Struct::no_bias = v; return *this; }
};

struct MessagePassingOpt : detail::Sized<ctn_message_passing_opt> {
    MessagePassingOpt &aggregate(ctn_aggregate v) { Struct::aggregate = v; return *this; }
    MessagePassingOpt &residual(int v) { Struct::residual = v; return *this; }
};

struct InceptionOpt : detail::Sized<ctn_inception_opt> {
    InceptionOpt &out1(int64_t v) { Struct::out1 = v; return *this; }
    InceptionOpt &reduce3(int64_t v) { Struct::reduce3 = v; return *this; }
    InceptionOpt &out3(int64_t v) { Struct::out3 = v; return *this; }
    InceptionOpt &reduce5(int64_t v) { Struct::reduce5 = v; return *this; }
    InceptionOpt &out5(int64_t v) { Struct::out5 = v; return *this; }
    InceptionOpt &pool(int64_t v) { Struct::pool = v; return *this; }
    InceptionOpt &batch_norm(int v) { Struct::batch_norm = v; return *this; }
};

struct InceptionBnOpt : detail::Sized<ctn_inception_bn_opt> {
    InceptionBnOpt &out1(int64_t v) { Struct::out1 = v; return *this; }
    InceptionBnOpt &reduce3(int64_t v) { Struct::reduce3 = v; return *this; }
    InceptionBnOpt &out3(int64_t v) { Struct::out3 = v; return *this; }
    InceptionBnOpt &reduce33(int64_t v) { Struct::reduce33 = v; return *this; }
    InceptionBnOpt &out33(int64_t v) { Struct::out33 = v; return *this; }
    InceptionBnOpt &pool(int64_t v) { Struct::pool = v; return *this; }
    InceptionBnOpt &stride(int64_t v) { Struct::stride = v; return *this; }
    InceptionBnOpt &average(int v) { Struct::average = v; return *this; }
};

struct LoraOpt : detail::Sized<ctn_lora_opt> {
    LoraOpt &rank(int64_t v) { Struct::rank = v; return *this; }
    LoraOpt &alpha(double v) { Struct::alpha = v; return *this; }
    LoraOpt &only(const char *const *v) { Struct::only = v; return *this; }
    LoraOpt &base(ctn_dtype v) { Struct::base = v; return *this; }
};

struct SpectralNormOpt : detail::Sized<ctn_spectral_norm_opt> {
    SpectralNormOpt &dim(int v) { Struct::dim = v; return *this; }
    SpectralNormOpt &iterations(int v) { Struct::iterations = v; return *this; }
    SpectralNormOpt &eps(double v) { Struct::eps = v; return *this; }
};

struct OnnxOpt : detail::Sized<ctn_onnx_opt> {
    OnnxOpt &frozen(int v) { Struct::frozen = v; return *this; }
};

struct OnnxExportOpt : detail::Sized<ctn_onnx_export_opt> {
    OnnxExportOpt &opset(int v) { Struct::opset = v; return *this; }
    OnnxExportOpt &fold_batch_norm(int v) { Struct::fold_batch_norm = v; return *this; }
    OnnxExportOpt &external(int v) { Struct::external = v; return *this; }
    OnnxExportOpt &batch(int64_t v) { Struct::batch = v; return *this; }
    OnnxExportOpt &any_batch(int64_t v) { Struct::any_batch = v; return *this; }
    OnnxExportOpt &any_length(int64_t v) { Struct::any_length = v; return *this; }
    OnnxExportOpt &in_names(const char *const *v) { Struct::in_names = v; return *this; }
    OnnxExportOpt &out_names(const char *const *v) { Struct::out_names = v; return *this; }
    OnnxExportOpt &module(ModuleRef v) { Struct::module = v.get(); return *this; }
};

struct SoftmaxCrossEntropyOpt : detail::Sized<ctn_softmax_cross_entropy_opt> {
    SoftmaxCrossEntropyOpt &weights(const Tensor &v) { Struct::weights = v.get(); return *this; }
    SoftmaxCrossEntropyOpt &reduction(ctn_reduction v) { Struct::reduction = v; return *this; }
    SoftmaxCrossEntropyOpt &ignore(const int64_t *v) { Struct::ignore = v; return *this; }
    SoftmaxCrossEntropyOpt &smoothing(double v) { Struct::smoothing = v; return *this; }
    SoftmaxCrossEntropyOpt &bias(const Tensor &v) { Struct::bias = v.get(); return *this; }
};

struct ConvOpt : detail::Sized<ctn_conv_opt> {
    ConvOpt &stride(Span<const int64_t> v) { detail::fill(Struct::stride, v); return *this; }
    ConvOpt &pad(Span<const int64_t> v) { detail::fill(Struct::pad, v); return *this; }
    ConvOpt &pad_end(Span<const int64_t> v) { detail::fill(Struct::pad_end, v); return *this; }
    ConvOpt &dilation(Span<const int64_t> v) { detail::fill(Struct::dilation, v); return *this; }
    ConvOpt &groups(int64_t v) { Struct::groups = v; return *this; }
    ConvOpt &out_pad(Span<const int64_t> v) { detail::fill(Struct::out_pad, v); return *this; }
    ConvOpt &pad_mode(ctn_pad_mode v) { Struct::pad_mode = v; return *this; }
};

struct PoolOpt : detail::Sized<ctn_pool_opt> {
    PoolOpt &kernel(Span<const int64_t> v) { detail::fill(Struct::kernel, v); return *this; }
    PoolOpt &stride(Span<const int64_t> v) { detail::fill(Struct::stride, v); return *this; }
    PoolOpt &pad(Span<const int64_t> v) { detail::fill(Struct::pad, v); return *this; }
    PoolOpt &ceil(int v) { Struct::ceil = v; return *this; }
    PoolOpt &exclude_pad(int v) { Struct::exclude_pad = v; return *this; }
};

struct RoiOpt : detail::Sized<ctn_roi_opt> {
    RoiOpt &size(Span<const int64_t> v) { detail::fill(Struct::size, v); return *this; }
    RoiOpt &scale(double v) { Struct::scale = v; return *this; }
    RoiOpt &max(int v) { Struct::max = v; return *this; }
    RoiOpt &sampling(Span<const int64_t> v) { detail::fill(Struct::sampling, v); return *this; }
    RoiOpt &aligned(int v) { Struct::aligned = v; return *this; }
    RoiOpt &inclusive(int v) { Struct::inclusive = v; return *this; }
};

struct BatchNormOpt : detail::Sized<ctn_batch_norm_opt> {
    BatchNormOpt &eps(double v) { Struct::eps = v; return *this; }
    BatchNormOpt &momentum(double v) { Struct::momentum = v; return *this; }
    BatchNormOpt &frozen(int v) { Struct::frozen = v; return *this; }
};

struct DecorrelatedBatchNormOpt : detail::Sized<ctn_decorrelated_batch_norm_opt> {
    DecorrelatedBatchNormOpt &groups(int64_t v) { Struct::groups = v; return *this; }
    DecorrelatedBatchNormOpt &eps(double v) { Struct::eps = v; return *this; }
    DecorrelatedBatchNormOpt &momentum(double v) { Struct::momentum = v; return *this; }
};

struct BatchRenormOpt : detail::Sized<ctn_batch_renorm_opt> {
    BatchRenormOpt &eps(double v) { Struct::eps = v; return *this; }
    BatchRenormOpt &momentum(double v) { Struct::momentum = v; return *this; }
    BatchRenormOpt &rmax(double v) { Struct::rmax = v; return *this; }
    BatchRenormOpt &dmax(double v) { Struct::dmax = v; return *this; }
};

struct ClusteringOpt : detail::Sized<ctn_clustering_opt> {
    ClusteringOpt &pull(double v) { Struct::pull = v; return *this; }
    ClusteringOpt &push(double v) { Struct::push = v; return *this; }
    ClusteringOpt &norm(int v) { Struct::norm = v; return *this; }
};

struct AttentionOpt : detail::Sized<ctn_attention_opt> {
    AttentionOpt &scale(double v) { Struct::scale = v; return *this; }
    AttentionOpt &causal(int v) { Struct::causal = v; return *this; }
    AttentionOpt &window(int64_t v) { Struct::window = v; return *this; }
    AttentionOpt &dropout(double v) { Struct::dropout = v; return *this; }
    AttentionOpt &lengths(const Tensor &v) { Struct::lengths = v.get(); return *this; }
    AttentionOpt &first(const Tensor &v) { Struct::first = v.get(); return *this; }
    AttentionOpt &composed(int v) { Struct::composed = v; return *this; }
};

struct RotaryOpt : detail::Sized<ctn_rotary_opt> {
    RotaryOpt &base(double v) { Struct::base = v; return *this; }
    RotaryOpt &first(double v) { Struct::first = v; return *this; }
    RotaryOpt &dims(int64_t v) { Struct::dims = v; return *this; }
    RotaryOpt &interleaved(int v) { Struct::interleaved = v; return *this; }
    RotaryOpt &positions(const Tensor &v) { Struct::positions = v.get(); return *this; }
};

struct RnnOpt : detail::Sized<ctn_rnn_opt> {
    RnnOpt &h0(const Tensor &v) { Struct::h0 = v.get(); return *this; }
    RnnOpt &c0(const Tensor &v) { Struct::c0 = v.get(); return *this; }
    RnnOpt &lengths(const Tensor &v) { Struct::lengths = v.get(); return *this; }
    RnnOpt &reverse(int v) { Struct::reverse = v; return *this; }
    RnnOpt &relu(int v) { Struct::relu = v; return *this; }
    RnnOpt &composed(int v) { Struct::composed = v; return *this; }
};

struct CtcOpt : detail::Sized<ctn_ctc_opt> {
    CtcOpt &input_lengths(const Tensor &v) { Struct::input_lengths = v.get(); return *this; }
    CtcOpt &label_lengths(const Tensor &v) { Struct::label_lengths = v.get(); return *this; }
    CtcOpt &blank(int64_t v) { Struct::blank = v; return *this; }
    CtcOpt &reduction(ctn_reduction v) { Struct::reduction = v; return *this; }
    CtcOpt &per_label(int v) { Struct::per_label = v; return *this; }
    CtcOpt &zero_infinity(int v) { Struct::zero_infinity = v; return *this; }
    CtcOpt &composed(int v) { Struct::composed = v; return *this; }
};

struct CrfOpt : detail::Sized<ctn_crf_opt> {
    CrfOpt &lengths(const Tensor &v) { Struct::lengths = v.get(); return *this; }
    CrfOpt &reduction(ctn_reduction v) { Struct::reduction = v; return *this; }
};

struct SgdOpt : detail::Sized<ctn_sgd_opt> {
    SgdOpt &lr(double v) { Struct::lr = v; return *this; }
    SgdOpt &momentum(double v) { Struct::momentum = v; return *this; }
    SgdOpt &dampening(double v) { Struct::dampening = v; return *this; }
    SgdOpt &decay(double v) { Struct::decay = v; return *this; }
    SgdOpt &nesterov(int v) { Struct::nesterov = v; return *this; }
};

struct AdamOpt : detail::Sized<ctn_adam_opt> {
    AdamOpt &lr(double v) { Struct::lr = v; return *this; }
    AdamOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    AdamOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    AdamOpt &eps(double v) { Struct::eps = v; return *this; }
    AdamOpt &decay(double v) { Struct::decay = v; return *this; }
    AdamOpt &amsgrad(int v) { Struct::amsgrad = v; return *this; }
};

struct RmspropOpt : detail::Sized<ctn_rmsprop_opt> {
    RmspropOpt &lr(double v) { Struct::lr = v; return *this; }
    RmspropOpt &alpha(double v) { Struct::alpha = v; return *this; }
    RmspropOpt &eps(double v) { Struct::eps = v; return *this; }
    RmspropOpt &momentum(double v) { Struct::momentum = v; return *this; }
    RmspropOpt &decay(double v) { Struct::decay = v; return *this; }
    RmspropOpt &centered(int v) { Struct::centered = v; return *this; }
};

struct AdagradOpt : detail::Sized<ctn_adagrad_opt> {
    AdagradOpt &lr(double v) { Struct::lr = v; return *this; }
    AdagradOpt &lr_decay(double v) { Struct::lr_decay = v; return *this; }
    AdagradOpt &eps(double v) { Struct::eps = v; return *this; }
    AdagradOpt &initial(double v) { Struct::initial = v; return *this; }
    AdagradOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct AdadeltaOpt : detail::Sized<ctn_adadelta_opt> {
    AdadeltaOpt &lr(double v) { Struct::lr = v; return *this; }
    AdadeltaOpt &rho(double v) { Struct::rho = v; return *this; }
    AdadeltaOpt &eps(double v) { Struct::eps = v; return *this; }
    AdadeltaOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct AdamaxOpt : detail::Sized<ctn_adamax_opt> {
    AdamaxOpt &lr(double v) { Struct::lr = v; return *this; }
    AdamaxOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    AdamaxOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    AdamaxOpt &eps(double v) { Struct::eps = v; return *this; }
    AdamaxOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct NadamOpt : detail::Sized<ctn_nadam_opt> {
    NadamOpt &lr(double v) { Struct::lr = v; return *this; }
    NadamOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    NadamOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    NadamOpt &eps(double v) { Struct::eps = v; return *this; }
    NadamOpt &momentum_decay(double v) { Struct::momentum_decay = v; return *this; }
    NadamOpt &decay(double v) { Struct::decay = v; return *this; }
    NadamOpt &decoupled(int v) { Struct::decoupled = v; return *this; }
};

struct RadamOpt : detail::Sized<ctn_radam_opt> {
    RadamOpt &lr(double v) { Struct::lr = v; return *this; }
    RadamOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    RadamOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    RadamOpt &eps(double v) { Struct::eps = v; return *this; }
    RadamOpt &decay(double v) { Struct::decay = v; return *this; }
    RadamOpt &decoupled(int v) { Struct::decoupled = v; return *this; }
};

struct LionOpt : detail::Sized<ctn_lion_opt> {
    LionOpt &lr(double v) { Struct::lr = v; return *this; }
    LionOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    LionOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    LionOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct LambOpt : detail::Sized<ctn_lamb_opt> {
    LambOpt &lr(double v) { Struct::lr = v; return *this; }
    LambOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    LambOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    LambOpt &eps(double v) { Struct::eps = v; return *this; }
    LambOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct LarsOpt : detail::Sized<ctn_lars_opt> {
    LarsOpt &lr(double v) { Struct::lr = v; return *this; }
    LarsOpt &momentum(double v) { Struct::momentum = v; return *this; }
    LarsOpt &trust(double v) { Struct::trust = v; return *this; }
    LarsOpt &eps(double v) { Struct::eps = v; return *this; }
    LarsOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct AdaboundOpt : detail::Sized<ctn_adabound_opt> {
    AdaboundOpt &lr(double v) { Struct::lr = v; return *this; }
    AdaboundOpt &final_lr(double v) { Struct::final_lr = v; return *this; }
    AdaboundOpt &gamma(double v) { Struct::gamma = v; return *this; }
    AdaboundOpt &beta1(double v) { Struct::beta1 = v; return *this; }
    AdaboundOpt &beta2(double v) { Struct::beta2 = v; return *this; }
    AdaboundOpt &eps(double v) { Struct::eps = v; return *this; }
    AdaboundOpt &decay(double v) { Struct::decay = v; return *this; }
    AdaboundOpt &amsbound(int v) { Struct::amsbound = v; return *this; }
};

struct Smorms3Opt : detail::Sized<ctn_smorms3_opt> {
    Smorms3Opt &lr(double v) { Struct::lr = v; return *this; }
    Smorms3Opt &eps(double v) { Struct::eps = v; return *this; }
    Smorms3Opt &decay(double v) { Struct::decay = v; return *this; }
};

struct MsvagOpt : detail::Sized<ctn_msvag_opt> {
    MsvagOpt &lr(double v) { Struct::lr = v; return *this; }
    MsvagOpt &beta(double v) { Struct::beta = v; return *this; }
    MsvagOpt &decay(double v) { Struct::decay = v; return *this; }
};

struct AdafactorOpt : detail::Sized<ctn_adafactor_opt> {
    AdafactorOpt &lr(double v) { Struct::lr = v; return *this; }
    AdafactorOpt &beta2_decay(double v) { Struct::beta2_decay = v; return *this; }
    AdafactorOpt &eps1(double v) { Struct::eps1 = v; return *this; }
    AdafactorOpt &eps2(double v) { Struct::eps2 = v; return *this; }
    AdafactorOpt &clip(double v) { Struct::clip = v; return *this; }
    AdafactorOpt &decay(double v) { Struct::decay = v; return *this; }
    AdafactorOpt &fixed_step(int v) { Struct::fixed_step = v; return *this; }
};

struct LbfgsOpt : detail::Sized<ctn_lbfgs_opt> {
    LbfgsOpt &lr(double v) { Struct::lr = v; return *this; }
    LbfgsOpt &iterations(int v) { Struct::iterations = v; return *this; }
    LbfgsOpt &evaluations(int v) { Struct::evaluations = v; return *this; }
    LbfgsOpt &history(int v) { Struct::history = v; return *this; }
    LbfgsOpt &tol_grad(double v) { Struct::tol_grad = v; return *this; }
    LbfgsOpt &tol_change(double v) { Struct::tol_change = v; return *this; }
    LbfgsOpt &no_line_search(int v) { Struct::no_line_search = v; return *this; }
};

struct GroupOpt : detail::Sized<ctn_group_opt> {
    GroupOpt &lr_scale(double v) { Struct::lr_scale = v; return *this; }
    GroupOpt &decay(const double *v) { Struct::decay = v; return *this; }
    GroupOpt &freeze(int v) { Struct::freeze = v; return *this; }
};

struct LossScaleOpt : detail::Sized<ctn_loss_scale_opt> {
    LossScaleOpt &scale(double v) { Struct::scale = v; return *this; }
    LossScaleOpt &dynamic(int v) { Struct::dynamic = v; return *this; }
    LossScaleOpt &growth(double v) { Struct::growth = v; return *this; }
    LossScaleOpt &backoff(double v) { Struct::backoff = v; return *this; }
    LossScaleOpt &interval(int64_t v) { Struct::interval = v; return *this; }
    LossScaleOpt &max(double v) { Struct::max = v; return *this; }
    LossScaleOpt &min(double v) { Struct::min = v; return *this; }
};

struct SchedOpt : detail::Sized<ctn_sched_opt> {
    SchedOpt &kind(ctn_sched_kind v) { Struct::kind = v; return *this; }
    SchedOpt &warmup(int64_t v) { Struct::warmup = v; return *this; }
    SchedOpt &steps(int64_t v) { Struct::steps = v; return *this; }
    SchedOpt &every(int64_t v) { Struct::every = v; return *this; }
    SchedOpt &gamma(double v) { Struct::gamma = v; return *this; }
    SchedOpt &end(double v) { Struct::end = v; return *this; }
    SchedOpt &power(double v) { Struct::power = v; return *this; }
    SchedOpt &at(Span<const int64_t> v) { detail::fill(Struct::at, v); return *this; }
    SchedOpt &start(double v) { Struct::start = v; return *this; }
    SchedOpt &rise(double v) { Struct::rise = v; return *this; }
    SchedOpt &swa_start(int64_t v) { Struct::swa_start = v; return *this; }
    SchedOpt &swa_steps(int64_t v) { Struct::swa_steps = v; return *this; }
    SchedOpt &swa_end(double v) { Struct::swa_end = v; return *this; }
    SchedOpt &swa_linear(int v) { Struct::swa_linear = v; return *this; }
};

struct TokenizerOpt : detail::Sized<ctn_tokenizer_opt> {
    TokenizerOpt &ignore_special(int v) { Struct::ignore_special = v; return *this; }
    TokenizerOpt &keep_case(int v) { Struct::keep_case = v; return *this; }
};

struct ChatOpt : detail::Sized<ctn_chat_opt> {
    ChatOpt &no_prompt(int v) { Struct::no_prompt = v; return *this; }
};

struct TokensPackOpt : detail::Sized<ctn_tokens_pack_opt> {
    TokensPackOpt &threads(int v) { Struct::threads = v; return *this; }
    TokensPackOpt &end(Text v) { Struct::end = v.get(); return *this; }
    TokensPackOpt &piece(int64_t v) { Struct::piece = v; return *this; }
    TokensPackOpt &progress(void (*v)(void *, int64_t,
            int64_t)) { Struct::progress = v; return *this; }
    TokensPackOpt &user(void *v) { Struct::user = v; return *this; }
};

struct TrainerOpt : detail::Sized<ctn_trainer_opt> {
    TrainerOpt &net(ModuleRef v) { Struct::net = v.get(); return *this; }
    TrainerOpt &epochs(int64_t v) { Struct::epochs = v; return *this; }
    TrainerOpt &iterations(int64_t v) { Struct::iterations = v; return *this; }
    TrainerOpt &seconds(double v) { Struct::seconds = v; return *this; }
    TrainerOpt &accumulate(int64_t v) { Struct::accumulate = v; return *this; }
    TrainerOpt &out(Text v) { Struct::out = v.get(); return *this; }
};

struct ShowOpt : detail::Sized<ctn_show_opt> {
    ShowOpt &write(void (*v)(void *, const char *)) { Struct::write = v; return *this; }
    ShowOpt &user(void *v) { Struct::user = v; return *this; }
    ShowOpt &terminal(int v) { Struct::terminal = v; return *this; }
    ShowOpt &columns(int v) { Struct::columns = v; return *this; }
};

struct PatienceOpt : detail::Sized<ctn_patience_opt> {
    PatienceOpt &key(Text v) { Struct::key = v.get(); return *this; }
    PatienceOpt &larger(int v) { Struct::larger = v; return *this; }
    PatienceOpt &patience(int64_t v) { Struct::patience = v; return *this; }
    PatienceOpt &factor(double v) { Struct::factor = v; return *this; }
    PatienceOpt &min(double v) { Struct::min = v; return *this; }
    PatienceOpt &difference(double v) { Struct::difference = v; return *this; }
};

struct NonfiniteOpt : detail::Sized<ctn_nonfinite_opt> {
    NonfiniteOpt &policy(ctn_nonfinite_policy v) { Struct::policy = v; return *this; }
    NonfiniteOpt &max_skips(int64_t v) { Struct::max_skips = v; return *this; }
    NonfiniteOpt &max_rewinds(int64_t v) { Struct::max_rewinds = v; return *this; }
    NonfiniteOpt &factor(double v) { Struct::factor = v; return *this; }
};

struct SpikeOpt : detail::Sized<ctn_spike_opt> {
    SpikeOpt &deviations(double v) { Struct::deviations = v; return *this; }
    SpikeOpt &window(int64_t v) { Struct::window = v; return *this; }
};

struct StateInfo : detail::Sized<ctn_state_info> {
    StateInfo &number(int64_t v) { Struct::number = v; return *this; }
    StateInfo &path(Text v) { Struct::path = v.get(); return *this; }
    StateInfo &iteration(int64_t v) { Struct::iteration = v; return *this; }
    StateInfo &epoch(int64_t v) { Struct::epoch = v; return *this; }
    StateInfo &samples(int64_t v) { Struct::samples = v; return *this; }
    StateInfo &ranks(int64_t v) { Struct::ranks = v; return *this; }
    StateInfo &bytes(int64_t v) { Struct::bytes = v; return *this; }
    StateInfo &files(int64_t v) { Struct::files = v; return *this; }
    StateInfo &arrays(int64_t v) { Struct::arrays = v; return *this; }
    StateInfo &problem(Text v) { Struct::problem = v.get(); return *this; }
};

struct StateArray : detail::Sized<ctn_state_array> {
    StateArray &name(Text v) { Struct::name = v.get(); return *this; }
    StateArray &dtype(ctn_dtype v) { Struct::dtype = v; return *this; }
    StateArray &ndim(int v) { Struct::ndim = v; return *this; }
    StateArray &shape(Span<const int64_t> v) { detail::fill(Struct::shape, v); return *this; }
    StateArray &hash(Text v) { Struct::hash = v.get(); return *this; }
};

struct ZooOpt : detail::Sized<ctn_zoo_opt> {
    ZooOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    ZooOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
};

struct MlpOpt : detail::Sized<ctn_mlp_opt> {
    MlpOpt &n(int v) { Struct::n = v; return *this; }
    MlpOpt &size(const int64_t *v) { Struct::size = v; return *this; }
    MlpOpt &activation(ctn_tensor *(*v)(const char *,
            ctn_tensor *)) { Struct::activation = v; return *this; }
    MlpOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct Lenet5Opt : detail::Sized<ctn_lenet5_opt> {
    Lenet5Opt &classes(int64_t v) { Struct::classes = v; return *this; }
    Lenet5Opt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
};

struct ResnetOpt : detail::Sized<ctn_resnet_opt> {
    ResnetOpt &depth(int v) { Struct::depth = v; return *this; }
    ResnetOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    ResnetOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    ResnetOpt &width(int64_t v) { Struct::width = v; return *this; }
};

struct ResnetCifarOpt : detail::Sized<ctn_resnet_cifar_opt> {
    ResnetCifarOpt &depth(int v) { Struct::depth = v; return *this; }
    ResnetCifarOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    ResnetCifarOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    ResnetCifarOpt &width(int64_t v) { Struct::width = v; return *this; }
};

struct MobilenetV2Opt : detail::Sized<ctn_mobilenet_v2_opt> {
    MobilenetV2Opt &classes(int64_t v) { Struct::classes = v; return *this; }
    MobilenetV2Opt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    MobilenetV2Opt &width(double v) { Struct::width = v; return *this; }
    MobilenetV2Opt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct VggOpt : detail::Sized<ctn_vgg_opt> {
    VggOpt &depth(int v) { Struct::depth = v; return *this; }
    VggOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    VggOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    VggOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct GooglenetOpt : detail::Sized<ctn_googlenet_opt> {
    GooglenetOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    GooglenetOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    GooglenetOpt &batch_norm(int v) { Struct::batch_norm = v; return *this; }
    GooglenetOpt &no_aux(int v) { Struct::no_aux = v; return *this; }
    GooglenetOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct UnetOpt : detail::Sized<ctn_unet_opt> {
    UnetOpt &spatial(int v) { Struct::spatial = v; return *this; }
    UnetOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    UnetOpt &out_channels(int64_t v) { Struct::out_channels = v; return *this; }
    UnetOpt &width(int64_t v) { Struct::width = v; return *this; }
    UnetOpt &depth(int v) { Struct::depth = v; return *this; }
};

struct FnoOpt : detail::Sized<ctn_fno_opt> {
    FnoOpt &spatial(int v) { Struct::spatial = v; return *this; }
    FnoOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    FnoOpt &out_channels(int64_t v) { Struct::out_channels = v; return *this; }
    FnoOpt &width(int64_t v) { Struct::width = v; return *this; }
    FnoOpt &modes(Span<const int64_t> v) { detail::fill(Struct::modes, v); return *this; }
    FnoOpt &layers(int v) { Struct::layers = v; return *this; }
    FnoOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    FnoOpt &pad(int64_t v) { Struct::pad = v; return *this; }
    FnoOpt &no_grid(int v) { Struct::no_grid = v; return *this; }
};

struct GptOpt : detail::Sized<ctn_gpt_opt> {
    GptOpt &vocabulary(int64_t v) { Struct::vocabulary = v; return *this; }
    GptOpt &block(int64_t v) { Struct::block = v; return *this; }
    GptOpt &width(int64_t v) { Struct::width = v; return *this; }
    GptOpt &layers(int v) { Struct::layers = v; return *this; }
    GptOpt &heads(int v) { Struct::heads = v; return *this; }
    GptOpt &dropout(double v) { Struct::dropout = v; return *this; }
    GptOpt &untied(int v) { Struct::untied = v; return *this; }
};

struct LlamaOpt : detail::Sized<ctn_llama_opt> {
    LlamaOpt &vocabulary(int64_t v) { Struct::vocabulary = v; return *this; }
    LlamaOpt &block(int64_t v) { Struct::block = v; return *this; }
    LlamaOpt &width(int64_t v) { Struct::width = v; return *this; }
    LlamaOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    LlamaOpt &layers(int v) { Struct::layers = v; return *this; }
    LlamaOpt &heads(int v) { Struct::heads = v; return *this; }
    LlamaOpt &kv_heads(int v) { Struct::kv_heads = v; return *this; }
    LlamaOpt &head_width(int64_t v) { Struct::head_width = v; return *this; }
    LlamaOpt &rotary_base(double v) { Struct::rotary_base = v; return *this; }
    LlamaOpt &eps(double v) { Struct::eps = v; return *this; }
    LlamaOpt &window(int64_t v) { Struct::window = v; return *this; }
    LlamaOpt &untied(int v) { Struct::untied = v; return *this; }
    LlamaOpt &qkv_bias(int v) { Struct::qkv_bias = v; return *this; }
};

struct BertOpt : detail::Sized<ctn_bert_opt> {
    BertOpt &vocabulary(int64_t v) { Struct::vocabulary = v; return *this; }
    BertOpt &block(int64_t v) { Struct::block = v; return *this; }
    BertOpt &types(int64_t v) { Struct::types = v; return *this; }
    BertOpt &width(int64_t v) { Struct::width = v; return *this; }
    BertOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    BertOpt &layers(int v) { Struct::layers = v; return *this; }
    BertOpt &heads(int v) { Struct::heads = v; return *this; }
    BertOpt &eps(double v) { Struct::eps = v; return *this; }
    BertOpt &classes(int64_t v) { Struct::classes = v; return *this; }
};

struct VitOpt : detail::Sized<ctn_vit_opt> {
    VitOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    VitOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    VitOpt &image(int64_t v) { Struct::image = v; return *this; }
    VitOpt &patch(int64_t v) { Struct::patch = v; return *this; }
    VitOpt &width(int64_t v) { Struct::width = v; return *this; }
    VitOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    VitOpt &layers(int v) { Struct::layers = v; return *this; }
    VitOpt &heads(int v) { Struct::heads = v; return *this; }
    VitOpt &eps(double v) { Struct::eps = v; return *this; }
};

struct Seq2seqOpt : detail::Sized<ctn_seq2seq_opt> {
    Seq2seqOpt &vocabulary(int64_t v) { Struct::vocabulary = v; return *this; }
    Seq2seqOpt &target_vocabulary(int64_t v) { Struct::target_vocabulary = v; return *this; }
    Seq2seqOpt &width(int64_t v) { Struct::width = v; return *this; }
    Seq2seqOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    Seq2seqOpt &layers(int v) { Struct::layers = v; return *this; }
    Seq2seqOpt &bidirectional(int v) { Struct::bidirectional = v; return *this; }
    Seq2seqOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct GcnOpt : detail::Sized<ctn_gcn_opt> {
    GcnOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    GcnOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    GcnOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    GcnOpt &layers(int v) { Struct::layers = v; return *this; }
    GcnOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct GatOpt : detail::Sized<ctn_gat_opt> {
    GatOpt &in_channels(int64_t v) { Struct::in_channels = v; return *this; }
    GatOpt &classes(int64_t v) { Struct::classes = v; return *this; }
    GatOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    GatOpt &heads(int64_t v) { Struct::heads = v; return *this; }
    GatOpt &layers(int v) { Struct::layers = v; return *this; }
    GatOpt &dropout(double v) { Struct::dropout = v; return *this; }
};

struct MeshgraphnetOpt : detail::Sized<ctn_meshgraphnet_opt> {
    MeshgraphnetOpt &node_in(int64_t v) { Struct::node_in = v; return *this; }
    MeshgraphnetOpt &edge_in(int64_t v) { Struct::edge_in = v; return *this; }
    MeshgraphnetOpt &out(int64_t v) { Struct::out = v; return *this; }
    MeshgraphnetOpt &hidden(int64_t v) { Struct::hidden = v; return *this; }
    MeshgraphnetOpt &steps(int v) { Struct::steps = v; return *this; }
    MeshgraphnetOpt &mlp_layers(int v) { Struct::mlp_layers = v; return *this; }
};

// ---- comm.h
inline void mpi_init(int *argc = nullptr, char ***argv = nullptr)
{
    detail::check(ctn_mpi_init(argc, argv));
}
inline void mpi_finalize()
{
    detail::check(ctn_mpi_finalize());
}
inline Comm::Comm(Maybe<ctn_comm_opt> opt)
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_open(&out, opt.get()));
    reset(out);
}
inline std::vector<Comm> comm_loopback(int n, Maybe<ctn_comm_opt> opt = {})
{
    std::vector<ctn_comm *> out(static_cast<std::size_t>(n));
    detail::check(ctn_comm_loopback(out.data(), n, opt.get()));
    return detail::objects<Comm>(out);
}
inline Comm comm_adopt(Text abi, const void *handle, Maybe<ctn_comm_opt> opt = {})
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_adopt(&out, abi.get(), handle, opt.get()));
    return Comm(out);
}
inline Comm comm_adopt_fortran(int handle, Maybe<ctn_comm_opt> opt = {})
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_adopt_fortran(&out, handle, opt.get()));
    return Comm(out);
}
inline int CommRef::rank() const
{
    return ctn_comm_rank(get());
}
inline int CommRef::size() const
{
    return ctn_comm_size(get());
}
inline int CommRef::nodes() const
{
    return ctn_comm_nodes(get());
}
inline int CommRef::node() const
{
    return ctn_comm_node(get());
}
inline int CommRef::local_rank() const
{
    return ctn_comm_local_rank(get());
}
inline int CommRef::local_size() const
{
    return ctn_comm_local_size(get());
}
inline const char *CommRef::transport() const
{
    return ctn_comm_transport(get());
}
inline const char *CommRef::algorithm() const
{
    return ctn_comm_algorithm(get());
}
inline const char *comm_algorithm_name(int i)
{
    return ctn_comm_algorithm_name(i);
}
inline void CommRef::set_algorithm(Text name) const
{
    detail::check(ctn_comm_set_algorithm(get(), name.get()));
}
inline void CommRef::allreduce(void *buf, int64_t count, ctn_dtype type) const
{
    detail::check(ctn_comm_allreduce(get(), buf, count, type));
}
inline void CommRef::broadcast(OutBytes buf, int root) const
{
    detail::check(ctn_comm_broadcast(get(), buf.data(), buf.size(), root));
}
inline void CommRef::allgather(Bytes mine, void *all) const
{
    detail::check(ctn_comm_allgather(get(), mine.data(), mine.size(), all));
}
inline void CommRef::gather(Bytes mine, void *all, int root) const
{
    detail::check(ctn_comm_gather(get(), mine.data(), mine.size(), all, root));
}
inline void CommRef::scatter(const void *all, OutBytes mine, int root) const
{
    detail::check(ctn_comm_scatter(get(), all, mine.size(), mine.data(), root));
}
inline void CommRef::send_bytes(Bytes buf, int to) const
{
    detail::check(ctn_comm_send_bytes(get(), buf.data(), buf.size(), to));
}
inline size_t CommRef::recv_size(int from) const
{
    size_t bytes = 0;
    detail::check(ctn_comm_recv_size(get(), from, &bytes));
    return bytes;
}
inline void CommRef::recv_bytes(OutBytes buf, int from) const
{
    detail::check(ctn_comm_recv_bytes(get(), buf.data(), buf.size(), from));
}
inline void CommRef::barrier() const
{
    detail::check(ctn_comm_barrier(get()));
}
inline void CommRef::agree(Text text) const
{
    detail::check(ctn_comm_agree(get(), text.get()));
}
inline void CommRef::fail(Text message) const
{
    ctn_comm_fail(get(), message.get());
}
inline void CommRef::break_group(Text message) const
{
    ctn_comm_break(get(), message.get());
}
inline int CommRef::survives() const
{
    return ctn_comm_survives(get());
}
inline int CommRef::lost() const
{
    return ctn_comm_lost(get());
}
inline Comm CommRef::shrink(Maybe<ctn_comm_opt> opt) const
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_shrink(&out, get(), opt.get()));
    return Comm(out);
}
inline Comm CommRef::again(Maybe<ctn_comm_opt> opt) const
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_again(&out, get(), opt.get()));
    return Comm(out);
}
inline Comm CommRef::split(int color, int key, Maybe<ctn_comm_opt> opt) const
{
    ctn_comm *out = nullptr;
    detail::check(ctn_comm_split(&out, get(), color, key, opt.get()));
    return Comm(out);
}
inline ctn_comm_stats CommRef::get_stats() const
{
    ctn_comm_stats out = {};
    out.struct_size = sizeof out;
    ctn_comm_get_stats(get(), &out);
    return out;
}

// ---- context.h
inline Context::Context(Maybe<ctn_context_opt> opt)
{
    ctn_context *ctx = nullptr;
    detail::check(ctn_context_new(&ctx, opt.get()));
    reset(ctx);
}
inline int ContextRef::threads() const
{
    return ctn_context_threads(get());
}
inline ctn_dtype ContextRef::float_type() const
{
    return ctn_context_float_type(get());
}
inline ctn_context_state ContextRef::get_state() const
{
    ctn_context_state out = {};
    ctn_context_get_state(get(), &out);
    return out;
}
inline void ContextRef::set_state(const ctn_context_state &in) const
{
    detail::check(ctn_context_set_state(get(), &in));
}
inline void ContextRef::set_share(const ctn_share &share) const
{
    detail::check(ctn_context_set_share(get(), &share));
}
inline int ContextRef::set_training(int on) const
{
    return ctn_context_set_training(get(), on);
}
inline int ContextRef::set_grad(int on) const
{
    return ctn_context_set_grad(get(), on);
}
inline int ContextRef::training() const
{
    return ctn_context_training(get());
}
[[nodiscard]] inline Tensor input(ContextRef ctx, const void *data, ctn_dtype dtype, Shape dims,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_input_at(at.text(), ctx.get(), data, dtype,
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor input_strided(ContextRef ctx, const void *data, ctn_dtype dtype,
        Shape dims, Span<const int64_t> strides, Where at = Where::here())
{
    detail::same_length("input_strided: strides", strides.size(),
            detail::length<int64_t>(dims.size()), "as many as dims");
    return Tensor(detail::check(ctn_input_strided_at(at.text(), ctx.get(), data, dtype,
            detail::length<int>(dims.size()), dims.data(), strides.data())));
}
[[nodiscard]] inline Tensor number(ContextRef ctx, double value, Where at = Where::here())
{
    return Tensor(detail::check(ctn_number_at(at.text(), ctx.get(), value)));
}
[[nodiscard]] inline Tensor keep(const Tensor &t)
{
    return Tensor(detail::check(ctn_keep(t.get())));
}
[[nodiscard]] inline Tensor keep_graph(const Tensor &t)
{
    return Tensor(detail::check(ctn_keep_graph(t.get())));
}
inline Tensor RetainedRef::value(Where at) const
{
    return Tensor(detail::check(ctn_retained_value_at(at.text(), get())));
}
[[nodiscard]] inline Tensor detach(const Tensor &t, Where at = Where::here())
{
    return Tensor(detail::check(ctn_detach_at(at.text(), t.get())));
}
inline std::vector<Tensor> grad(const Tensor &y, Span<const Tensor> xs, Where at = Where::here())
{
    std::vector<ctn_tensor *> gxs(xs.size());
    detail::check(ctn_grad_at(at.text(), y.get(), detail::length<int>(xs.size()),
            detail::pointers(xs), gxs.data()));
    return detail::objects<Tensor>(gxs);
}
[[nodiscard]] inline Tensor with_grad(const Tensor &t)
{
    return Tensor(detail::check(ctn_with_grad(t.get())));
}
inline Var::Var(ContextRef ctx, Text name, ctn_var_kind kind, ctn_dtype dtype, Shape dims)
{
    ctn_var *v = nullptr;
    detail::check(ctn_var_new(&v, ctx.get(), name.get(), kind, dtype,
            detail::length<int>(dims.size()), dims.data()));
    reset(v);
}
inline const char *VarRef::name() const
{
    return ctn_var_name(get());
}
inline const ctn_desc *VarRef::desc() const
{
    return ctn_var_desc(get());
}
inline ctn_var_kind VarRef::kind_of() const
{
    return ctn_var_kind_of(get());
}
inline void VarRef::set_trainable(int on) const
{
    ctn_var_set_trainable(get(), on);
}
inline int VarRef::trainable() const
{
    return ctn_var_trainable(get());
}
inline ContextRef VarRef::context() const
{
    return ContextRef(detail::check_borrowed(ctn_var_context(get())));
}
inline void VarRef::read(OutBytes dst) const
{
    detail::check(ctn_var_get(get(), dst.data(), dst.size()));
}
inline void VarRef::write(Bytes src) const
{
    detail::check(ctn_var_set(get(), src.data(), src.size()));
}
inline void VarRef::grad(OutBytes dst) const
{
    detail::check(ctn_var_grad(get(), dst.data(), dst.size()));
}
inline Tensor VarRef::use(Where at) const
{
    return Tensor(detail::check(ctn_use_at(at.text(), get())));
}
inline void VarRef::assign(const Tensor &t, Where at) const
{
    detail::check(ctn_assign_at(at.text(), get(), t.get()));
}
inline void ContextRef::flush() const
{
    detail::check(ctn_flush(get()));
}
inline ctn_plan_stats ContextRef::get_stats() const
{
    ctn_plan_stats out = {};
    ctn_context_get_stats(get(), &out);
    return out;
}
inline std::string ContextRef::plan_text() const
{
    std::string buf{};
    detail::grow_text(buf, [&] { return ctn_context_plan_text(get(), buf.data(), buf.size()); });
    return buf;
}
inline std::string ContextRef::decisions_text() const
{
    std::string buf{};
    detail::grow_text(buf, [&] { return ctn_context_decisions_text(get(), buf.data(),
            buf.size()); });
    return buf;
}
inline void ContextRef::write_trace(Text path) const
{
    detail::check(ctn_context_write_trace(get(), path.get()));
}
inline void ContextRef::set_profile(int on) const
{
    ctn_context_set_profile(get(), on);
}

// ---- data.h
inline int64_t DatasetRef::count() const
{
    return ctn_dataset_count(get());
}
inline int DatasetRef::fields() const
{
    return ctn_dataset_fields(get());
}
inline const ctn_field *DatasetRef::field(int f) const
{
    return ctn_dataset_field(get(), f);
}
inline int64_t DatasetRef::length(int f, int64_t index) const
{
    return ctn_dataset_length(get(), f, index);
}
inline void DatasetRef::sample(const ctn_sample &s, Span<void *const> dst) const
{
    detail::same_length("sample: dst", dst.size(), ctn_dataset_fields(get()),
            "one per field of ds");
    detail::check(ctn_dataset_sample(get(), &s, dst.data()));
}
inline void DatasetRef::sample_at(int64_t index, Span<void *const> dst) const
{
    detail::same_length("sample_at: dst", dst.size(), ctn_dataset_fields(get()),
            "one per field of ds");
    detail::check(ctn_dataset_get(get(), index, dst.data()));
}
inline std::string DatasetRef::name(int64_t index) const
{
    std::string buf{};
    detail::grow_text(buf, [&] { return ctn_dataset_name(get(), index, buf.data(), buf.size()); });
    return buf;
}
inline const char *DatasetRef::class_name(int64_t k) const
{
    return ctn_dataset_class(get(), k);
}
inline int64_t DatasetRef::classes() const
{
    return ctn_dataset_classes(get());
}
inline int DatasetRef::resizes() const
{
    return ctn_dataset_resizes(get());
}
inline Dataset arrays_open(int64_t count, Span<const ctn_field> field, Span<const void *const> data)
{
    detail::same_length("arrays_open: data", data.size(), detail::length<int64_t>(field.size()),
            "as many as field");
    ctn_dataset *ds = nullptr;
    detail::check(ctn_arrays_open(&ds, count, detail::length<int>(field.size()), field.data(),
            data.data()));
    return Dataset(ds);
}
inline Dataset ragged_open(int64_t count, Span<const ctn_field> field,
        Span<const void *const> data, Span<const int64_t *const> offset)
{
    detail::same_length("ragged_open: data", data.size(), detail::length<int64_t>(field.size()),
            "as many as field");
    detail::same_length("ragged_open: offset", offset.size(),
            detail::length<int64_t>(field.size()), "as many as field");
    ctn_dataset *ds = nullptr;
    detail::check(ctn_ragged_open(&ds, count, detail::length<int>(field.size()), field.data(),
            data.data(), offset.data()));
    return Dataset(ds);
}
inline Dataset idx_open(Text images_path, Text labels_path = {}, Maybe<ctn_idx_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_idx_open(&ds, images_path.get(), labels_path.get(), opt.get()));
    return Dataset(ds);
}
inline Dataset mnist_open(Text dir, ctn_split split)
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_mnist_open(&ds, dir.get(), split));
    return Dataset(ds);
}
inline Dataset cifar10_open(Text dir, ctn_split split, Maybe<ctn_cifar_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_cifar10_open(&ds, dir.get(), split, opt.get()));
    return Dataset(ds);
}
inline Dataset cifar100_open(Text dir, ctn_split split, Maybe<ctn_cifar_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_cifar100_open(&ds, dir.get(), split, opt.get()));
    return Dataset(ds);
}
inline Dataset svhn_open(Text dir, ctn_split split, Maybe<ctn_cifar_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_svhn_open(&ds, dir.get(), split, opt.get()));
    return Dataset(ds);
}
inline Sampler sampler_sequential(int64_t count)
{
    ctn_sampler *s = nullptr;
    detail::check(ctn_sampler_sequential(&s, count));
    return Sampler(s);
}
inline Sampler sampler_shuffled(int64_t count, uint64_t seed)
{
    ctn_sampler *s = nullptr;
    detail::check(ctn_sampler_shuffled(&s, count, seed));
    return Sampler(s);
}
inline Sampler sampler_weighted(Span<const double> weight, uint64_t seed)
{
    ctn_sampler *s = nullptr;
    detail::check(ctn_sampler_weighted(&s, detail::length<int64_t>(weight.size()), weight.data(),
            seed));
    return Sampler(s);
}
inline Sampler sampler_bucketed(Span<const int64_t> length, int64_t batch, uint64_t seed)
{
    ctn_sampler *s = nullptr;
    detail::check(ctn_sampler_bucketed(&s, detail::length<int64_t>(length.size()), length.data(),
            batch, seed));
    return Sampler(s);
}
inline void SamplerRef::shard(int rank, int size) const
{
    detail::check(ctn_sampler_shard(get(), rank, size));
}
inline int64_t SamplerRef::count() const
{
    return ctn_sampler_count(get());
}
inline int64_t SamplerRef::total() const
{
    return ctn_sampler_total(get());
}
inline int64_t SamplerRef::index(uint64_t epoch, uint64_t position) const
{
    return ctn_sampler_index(get(), epoch, position);
}
inline ctn_sampler_state SamplerRef::get_state() const
{
    return ctn_sampler_get_state(get());
}
inline void SamplerRef::set_state(const ctn_sampler_state &state) const
{
    detail::check(ctn_sampler_set_state(get(), &state));
}
inline Loader::Loader(DatasetRef ds, SamplerRef s, Maybe<ctn_loader_opt> opt)
{
    ctn_loader *l = nullptr;
    detail::check(ctn_loader_new(&l, ds.get(), s.get(), opt.get()));
    reset(l);
}
inline bool LoaderRef::next(ctn_batch &b) const
{
    const ctn_status status = ctn_loader_next(get(), &b);
    detail::check(status);
    return status != CTN_END;
}
[[nodiscard]] inline Tensor batch_tensor(ContextRef ctx, const ctn_batch &b, int field,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_batch_tensor_at(at.text(), ctx.get(), &b, field)));
}
inline ctn_loader_stats LoaderRef::get_stats() const
{
    ctn_loader_stats out = {};
    ctn_loader_get_stats(get(), &out);
    return out;
}
inline ctn_sampler_state LoaderRef::get_state() const
{
    return ctn_loader_get_state(get());
}
inline void LoaderRef::set_state(const ctn_sampler_state &state) const
{
    detail::check(ctn_loader_set_state(get(), &state));
}

// ---- datasets.h
inline Dataset files_open(Span<const char *const> path, Maybe<ctn_files_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_files_open(&ds, detail::length<int>(path.size()), path.data(), opt.get()));
    return Dataset(ds);
}
inline void npy_save(Text path, int64_t count, const ctn_field &field, const void *data)
{
    detail::check(ctn_npy_save(path.get(), count, &field, data));
}
inline Dataset csv_open(Text path, Maybe<ctn_csv_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_csv_open(&ds, path.get(), opt.get()));
    return Dataset(ds);
}
inline const char *csv_column(DatasetRef ds, int field, int64_t k)
{
    return ctn_csv_column(ds.get(), field, k);
}
inline Dataset tokens_open(Text path, Maybe<ctn_tokens_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_tokens_open(&ds, path.get(), opt.get()));
    return Dataset(ds);
}
inline Dataset text_lines_open(Span<const char *const> path)
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_text_lines_open(&ds, detail::length<int>(path.size()), path.data()));
    return Dataset(ds);
}
inline Dataset DatasetRef::slice(int64_t first, int64_t count) const
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_slice(&ds, get(), first, count));
    return Dataset(ds);
}
inline Dataset DatasetRef::subset(Span<const int64_t> index) const
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_subset(&ds, get(), detail::length<int64_t>(index.size()),
            index.data()));
    return Dataset(ds);
}
inline std::tuple<Dataset, Dataset> dataset_split(DatasetRef base, double share, uint64_t seed)
{
    ctn_dataset *first = nullptr;
    ctn_dataset *second = nullptr;
    detail::check(ctn_dataset_split(&first, &second, base.get(), share, seed));
    return {Dataset(first), Dataset(second)};
}
inline Dataset dataset_concat(std::vector<Dataset> parts)
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_concat(&ds, detail::length<int>(parts.size()),
            detail::pointers(parts).data()));
    detail::release(parts);
    return Dataset(ds);
}
inline Dataset dataset_relabel(Dataset base, Span<const char *const> name)
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_relabel(&ds, base.get(), detail::length<int64_t>(name.size()),
            name.data()));
    static_cast<void>(base.release());
    return Dataset(ds);
}
inline Dataset DatasetRef::mask(TokenizerRef t, Maybe<ctn_mask_opt> opt) const
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_mask(&ds, get(), t.get(), opt.get()));
    return Dataset(ds);
}
inline void DatasetRef::moments(int field, Span<double> mean, Span<double> std) const
{
    detail::same_length("moments: std", std.size(), detail::length<int64_t>(mean.size()),
            "as many as mean");
    detail::check(ctn_dataset_moments(get(), field, detail::length<int64_t>(mean.size()),
            mean.data(), std.data()));
}
inline Dataset dataset_standardize(Dataset base, int field, Span<const double> mean,
        Span<const double> std)
{
    detail::same_length("dataset_standardize: std", std.size(),
            detail::length<int64_t>(mean.size()), "as many as mean");
    ctn_dataset *ds = nullptr;
    detail::check(ctn_dataset_standardize(&ds, base.get(), field,
            detail::length<int64_t>(mean.size()), mean.data(), std.data()));
    static_cast<void>(base.release());
    return Dataset(ds);
}

// ---- dist.h
inline void dist_optim(OptimRef o, CommRef c, Maybe<ctn_dist_opt> opt = {})
{
    detail::check(ctn_dist_optim(o.get(), c.get(), opt.get()));
}
inline ctn_dist_stats dist_get_stats(OptimRef o)
{
    ctn_dist_stats out = {};
    out.struct_size = sizeof out;
    ctn_dist_get_stats(o.get(), &out);
    return out;
}
inline void dist_step_empty(OptimRef o, Where at = Where::here())
{
    detail::check(ctn_dist_step_empty_at(at.text(), o.get()));
}
inline void dist_values(OptimRef o)
{
    detail::check(ctn_dist_values(o.get()));
}
inline void dist_broadcast_vars(CommRef c, ctn_vars vars, int root)
{
    detail::check(ctn_dist_broadcast_vars(c.get(), vars, root));
}
inline void dist_sync_batch_norm(ModuleRef m, CommRef c = {})
{
    detail::check(ctn_dist_sync_batch_norm(m.get(), c.get()));
}
inline void dist_mean(CommRef c, Span<double> value, Span<double> weight)
{
    detail::same_length("dist_mean: weight", weight.size(), detail::length<int64_t>(value.size()),
            "as many as value");
    detail::check(ctn_dist_mean(c.get(), detail::length<int>(value.size()), value.data(),
            weight.data()));
}
inline void dist_trainer(TrainerRef tr, CommRef c, Maybe<ctn_trigger> when = {})
{
    detail::check(ctn_dist_trainer(tr.get(), c.get(), when.get()));
}
inline void dist_state_save(CommRef c, Text dir, Span<const ctn_state_part> parts)
{
    detail::check(ctn_dist_state_save(c.get(), dir.get(), detail::length<int>(parts.size()),
            parts.data()));
}
inline void dist_state_load(CommRef c, Text dir, Span<const ctn_state_part> parts)
{
    detail::check(ctn_dist_state_load(c.get(), dir.get(), detail::length<int>(parts.size()),
            parts.data()));
}
inline int dist_timeline_has(int rank, int size, int ranks)
{
    return ctn_dist_timeline_has(rank, size, ranks);
}
inline void dist_timeline_begin(ContextRef ctx)
{
    detail::check(ctn_dist_timeline_begin(ctx.get()));
}
inline void dist_timeline_write(ContextRef ctx, CommRef c, Text path, int64_t steps, int ranks)
{
    detail::check(ctn_dist_timeline_write(ctx.get(), c.get(), path.get(), steps, ranks));
}
inline void extend_timeline(TrainerRef tr, Text path, int64_t steps, int ranks)
{
    detail::check(ctn_extend_timeline(tr.get(), path.get(), steps, ranks));
}

// ---- dist_ops.h
[[nodiscard]] inline Tensor dist_allreduce(CommRef c, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_allreduce_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_allreduce_max(CommRef c, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_allreduce_max_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_allreduce_min(CommRef c, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_allreduce_min_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_reduce(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_reduce_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_reduce_max(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_reduce_max_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_reduce_min(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_reduce_min_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_broadcast(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_broadcast_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_allgather(CommRef c, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_allgather_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_reduce_scatter(CommRef c, const Tensor &x,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_reduce_scatter_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_gather(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_gather_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_scatter(CommRef c, const Tensor &x, int root,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_scatter_at(at.text(), c.get(), x.get(), root)));
}
[[nodiscard]] inline Tensor dist_alltoall(CommRef c, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_alltoall_at(at.text(), c.get(), x.get())));
}
[[nodiscard]] inline Tensor dist_send(CommRef c, const Tensor &x, int rank,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_send_at(at.text(), c.get(), x.get(), rank)));
}
[[nodiscard]] inline Tensor dist_recv(CommRef c, ContextRef ctx, int rank, ctn_dtype dtype,
        Shape dims, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_recv_at(at.text(), c.get(), ctx.get(), rank, dtype,
            detail::length<int>(dims.size()), dims.data())));
}
inline DistChain::DistChain(ContextRef ctx, CommRef c)
{
    ctn_dist_chain *out = nullptr;
    detail::check(ctn_dist_chain_new(&out, ctx.get(), c.get()));
    reset(out);
}
inline void DistChainRef::add(ModuleRef m, Where at) const
{
    detail::check(ctn_dist_chain_add_at(at.text(), get(), m.get()));
}
inline void DistChainRef::recv(int rank, ctn_dtype dtype, Shape dims, Where at) const
{
    detail::check(ctn_dist_chain_recv_at(at.text(), get(), rank, dtype,
            detail::length<int>(dims.size()), dims.data()));
}
inline void DistChainRef::send(int rank, Where at) const
{
    detail::check(ctn_dist_chain_send_at(at.text(), get(), rank));
}
inline Tensor DistChainRef::call(const Tensor &x, int64_t rows, Where at) const
{
    return Tensor(detail::check(ctn_dist_chain_call_at(at.text(), get(), x.get(), rows)));
}
inline DistGrid::DistGrid(CommRef c, Shape ranks, unsigned int periodic)
{
    ctn_dist_grid *out = nullptr;
    detail::check(ctn_dist_grid_new(&out, c.get(), detail::length<int>(ranks.size()),
            ranks.data(), periodic));
    reset(out);
}
inline int64_t DistGridRef::length(int dimension, int64_t length) const
{
    return ctn_dist_grid_length(get(), dimension, length);
}
inline int64_t DistGridRef::begin(int dimension, int64_t length) const
{
    return ctn_dist_grid_begin(get(), dimension, length);
}
[[nodiscard]] inline Tensor dist_halo(DistGridRef g, const Tensor &x,
        Maybe<ctn_dist_halo_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dist_halo_at(at.text(), g.get(), x.get(), opt.get())));
}
inline void dist_field(ModuleRef m, DistGridRef g = {})
{
    detail::check(ctn_dist_field(m.get(), g.get()));
}

// ---- env.h
inline int env_count()
{
    return ctn_env_count();
}
inline ctn_env_entry env_get(int i)
{
    ctn_env_entry out = {};
    detail::check(ctn_env_get(i, &out));
    return out;
}

// ---- generate.h
inline Generator::Generator(ModuleRef m, Maybe<ctn_generator_opt> opt)
{
    ctn_generator *g = nullptr;
    detail::check(ctn_generator_new(&g, m.get(), opt.get()));
    reset(g);
}
inline void GeneratorRef::start(Span<const int32_t *const> prompt, Span<const int64_t> length,
        Span<int32_t> next) const
{
    detail::same_length("start: length", length.size(), detail::length<int64_t>(prompt.size()),
            "as many as prompt");
    detail::same_length("start: next", next.size(), detail::length<int64_t>(prompt.size()),
            "as many as prompt");
    detail::check(ctn_generator_start(get(), detail::length<int64_t>(prompt.size()),
            prompt.data(), length.data(), next.data()));
}
inline bool GeneratorRef::next(Span<const int32_t> tokens, Span<int32_t> next) const
{
    detail::same_length("next: tokens", tokens.size(), ctn_generator_sequences(get()),
            "one per sequence of g");
    detail::same_length("next: next", next.size(), ctn_generator_sequences(get()),
            "one per sequence of g");
    const ctn_status status = ctn_generator_next(get(), tokens.data(), next.data());
    detail::check(status);
    return status != CTN_END;
}
inline int64_t GeneratorRef::sequences() const
{
    return ctn_generator_sequences(get());
}
inline const float *GeneratorRef::logits() const
{
    return ctn_generator_logits(get());
}

// ---- image.h
inline void image_decode(Bytes file, Maybe<ctn_image_opt> opt, Maybe<ctn_sample> s, void *dst)
{
    detail::check(ctn_image_decode(file.data(), file.size(), opt.get(), s.get(), dst));
}
inline Dataset image_folder_open(Text dir, Maybe<ctn_image_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_image_folder_open(&ds, dir.get(), opt.get()));
    return Dataset(ds);
}
inline std::vector<unsigned char> image_folder_list(DatasetRef ds)
{
    std::vector<unsigned char> buf{};
    detail::grow(buf, [&] { return ctn_image_folder_list(ds.get(), buf.data(), buf.size()); });
    return buf;
}
inline Dataset image_folder_open_list(Text dir, Bytes list, Maybe<ctn_image_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_image_folder_open_list(&ds, dir.get(), list.data(), list.size(), opt.get()));
    return Dataset(ds);
}
inline Dataset image_list_open(Text list, Text root, Maybe<ctn_image_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_image_list_open(&ds, list.get(), root.get(), opt.get()));
    return Dataset(ds);
}
inline Dataset segmentation_open(Text path, Maybe<ctn_segmentation_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_segmentation_open(&ds, path.get(), opt.get()));
    return Dataset(ds);
}
inline Dataset shards_open(Text path, Maybe<ctn_shards_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_shards_open(&ds, path.get(), opt.get()));
    return Dataset(ds);
}
inline std::vector<unsigned char> shards_index(DatasetRef ds)
{
    std::vector<unsigned char> buf{};
    detail::grow(buf, [&] { return ctn_shards_index(ds.get(), buf.data(), buf.size()); });
    return buf;
}
inline int64_t shards_pack(Text dir, Text out, Maybe<ctn_pack_opt> opt = {})
{
    int64_t samples = 0;
    detail::check(ctn_shards_pack(dir.get(), out.get(), &samples, opt.get()));
    return samples;
}
inline Dataset augment_new(Dataset base, Maybe<ctn_image_opt> opt = {})
{
    ctn_dataset *ds = nullptr;
    detail::check(ctn_augment_new(&ds, base.get(), opt.get()));
    static_cast<void>(base.release());
    return Dataset(ds);
}

// ---- info.h
inline int build_count()
{
    return ctn_build_count();
}
inline ctn_build_entry build_get(int i)
{
    ctn_build_entry out = {};
    detail::check(ctn_build_get(i, &out));
    return out;
}
inline ctn_machine machine_get()
{
    ctn_machine out = {};
    ctn_machine_get(&out);
    return out;
}

// ---- io.h
inline void ModuleRef::save(Text path, Maybe<ctn_weights_save_opt> opt) const
{
    detail::check(ctn_weights_save_with(get(), path.get(), opt.get()));
}
inline void ModuleRef::load(Text path, Maybe<ctn_weights_opt> opt) const
{
    detail::check(ctn_weights_load(get(), path.get(), opt.get()));
}
inline void weights_compare(ModuleRef m, Text path, Maybe<ctn_weights_opt> opt,
        ctn_weights_match_fn fn, void *user = nullptr)
{
    detail::check(ctn_weights_compare(m.get(), path.get(), opt.get(), fn, user));
}
inline void published_write(ModuleRef m, Text from, Text folder)
{
    detail::check(ctn_published_write(m.get(), from.get(), folder.get()));
}
inline void lora_open(ModuleRef m, Text folder)
{
    detail::check(ctn_lora_open(m.get(), folder.get()));
}
inline Weights::Weights(Text path)
{
    ctn_weights *w = nullptr;
    detail::check(ctn_weights_open(&w, path.get()));
    reset(w);
}
inline const char *WeightsRef::format() const
{
    return ctn_weights_format(get());
}
inline int64_t WeightsRef::arrays() const
{
    return ctn_weights_arrays(get());
}
inline ctn_weights_array WeightsRef::get_array(int64_t i) const
{
    ctn_weights_array out = {};
    detail::check(ctn_weights_get_array(get(), i, &out));
    return out;
}
inline int64_t WeightsRef::find(Text name) const
{
    return ctn_weights_find(get(), name.get());
}
inline void WeightsRef::read(int64_t i, ctn_dtype dtype, OutBytes dst) const
{
    detail::check(ctn_weights_read(get(), i, dtype, dst.data(), dst.size()));
}
inline void weights_write(Text path, Span<const ctn_weights_item> items)
{
    detail::check(ctn_weights_write(path.get(), detail::length<int>(items.size()), items.data()));
}
inline ctn_state_part part_module(const char *prefix, ModuleRef m)
{
    return ctn_part_module(prefix, m.get());
}
inline ctn_state_part part_optim(const char *prefix, OptimRef o)
{
    return ctn_part_optim(prefix, o.get());
}
inline ctn_state_part part_context(const char *prefix, ContextRef ctx)
{
    return ctn_part_context(prefix, ctx.get());
}
inline ctn_state_part part_loader(const char *prefix, LoaderRef l)
{
    return ctn_part_loader(prefix, l.get());
}
inline void state_save(Text path, Span<const ctn_state_part> parts)
{
    detail::check(ctn_state_save(path.get(), detail::length<int>(parts.size()), parts.data()));
}
inline void state_load(Text path, Span<const ctn_state_part> parts)
{
    detail::check(ctn_state_load(path.get(), detail::length<int>(parts.size()), parts.data()));
}

// ---- log.h
inline void set_log(ctn_log_fn fn = nullptr, void *user = nullptr)
{
    ctn_set_log(fn, user);
}
inline void set_notice(ctn_log_fn fn = nullptr, void *user = nullptr)
{
    ctn_set_notice(fn, user);
}

// ---- nn.h
inline void VarRef::init(Maybe<ctn_init> init) const
{
    detail::check(ctn_var_init(get(), init.get()));
}
inline ModuleRef ModuleRef::add(Text name, Module child) const
{
    detail::check(ctn_module_add(get(), name.get(), child.get()));
    ModuleRef child_ref(child.release());
    return child_ref;
}
inline int ModuleRef::children() const
{
    return ctn_module_children(get());
}
inline ModuleRef ModuleRef::child(int i) const
{
    return ModuleRef(detail::check_borrowed(ctn_module_child(get(), i)));
}
inline ContextRef ModuleRef::context() const
{
    return ContextRef(detail::check_borrowed(ctn_module_context(get())));
}
inline ctn_predicts ModuleRef::predicts() const
{
    return ctn_module_predicts(get());
}
inline std::optional<int32_t> ModuleRef::ends(int room) const
{
    int32_t ids = 0;
    const auto found = ctn_module_ends(get(), &ids, room);
    return found ? std::optional<int32_t>(ids) : std::nullopt;
}
inline VarRef ModuleRef::param(Text name, ctn_dtype dtype, Shape dims, Maybe<ctn_init> init) const
{
    ctn_var *v = nullptr;
    detail::check(ctn_module_param(&v, get(), name.get(), dtype, detail::length<int>(dims.size()),
            dims.data(), init.get()));
    return VarRef(v);
}
inline VarRef ModuleRef::state(Text name, ctn_dtype dtype, Shape dims, Maybe<ctn_init> init) const
{
    ctn_var *v = nullptr;
    detail::check(ctn_module_state(&v, get(), name.get(), dtype, detail::length<int>(dims.size()),
            dims.data(), init.get()));
    return VarRef(v);
}
inline void ModuleRef::tie(Text name, VarRef v) const
{
    detail::check(ctn_module_tie(get(), name.get(), v.get()));
}
inline Tensor ModuleRef::operator()(const Tensor &x, Where at) const
{
    return Tensor(detail::check(ctn_call_at(at.text(), get(), x.get())));
}
inline ctn_tensors ModuleRef::call_multi(ctn_tensors x, Where at) const
{
    return detail::check_list(ctn_call_multi_at(at.text(), get(), x));
}
inline void ModuleRef::set_recompute(int on) const
{
    detail::check(ctn_module_set_recompute(get(), on));
}
inline const char *ModuleRef::source() const
{
    return ctn_module_source(get());
}
inline ctn_vars ModuleRef::params() const
{
    return detail::check_list(ctn_params(get()));
}
inline VarRef ModuleRef::find(Text name) const
{
    return VarRef(detail::check_borrowed(ctn_module_find(get(), name.get())));
}
inline int ModuleRef::set_trainable(Text pattern, int on) const
{
    return detail::check_number(ctn_module_set_trainable(get(), pattern.get(), on));
}
inline int ModuleRef::freeze_statistics(Text pattern, int on) const
{
    return detail::check_number(ctn_module_freeze_statistics(get(), pattern.get(), on));
}
inline Module ModuleRef::copy() const
{
    ctn_module *copy = nullptr;
    detail::check(ctn_module_copy(&copy, get()));
    return Module(copy);
}
inline Module module_share(ContextRef ctx, ModuleRef m)
{
    ctn_module *copy = nullptr;
    detail::check(ctn_module_share(&copy, ctx.get(), m.get()));
    return Module(copy);
}
inline Module sequential_new(ContextRef ctx, std::vector<Module> modules)
{
    ctn_module *m = nullptr;
    detail::check(ctn_sequential_new(&m, ctx.get(), detail::length<int>(modules.size()),
            detail::pointers(modules).data()));
    detail::release(modules);
    return Module(m);
}
inline Module module_list_new(ContextRef ctx, std::vector<Module> modules)
{
    ctn_module *m = nullptr;
    detail::check(ctn_module_list_new(&m, ctx.get(), detail::length<int>(modules.size()),
            detail::pointers(modules).data()));
    detail::release(modules);
    return Module(m);
}
inline Module linear_new(ContextRef ctx, int64_t in, int64_t out, Maybe<ctn_linear_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_linear_new(&m, ctx.get(), in, out, opt.get()));
    return Module(m);
}
inline Module conv_new(ContextRef ctx, int64_t in, int64_t out, Shape kernel,
        Maybe<ctn_conv_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_conv_new(&m, ctx.get(), in, out, detail::length<int>(kernel.size()),
            kernel.data(), opt.get()));
    return Module(m);
}
inline Module conv_transpose_new(ContextRef ctx, int64_t in, int64_t out, Shape kernel,
        Maybe<ctn_conv_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_conv_transpose_new(&m, ctx.get(), in, out,
            detail::length<int>(kernel.size()), kernel.data(), opt.get()));
    return Module(m);
}
inline Module deform_conv_new(ContextRef ctx, int64_t in, int64_t out, Shape kernel,
        Maybe<ctn_conv_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_deform_conv_new(&m, ctx.get(), in, out, detail::length<int>(kernel.size()),
            kernel.data(), opt.get()));
    return Module(m);
}
inline Module spectral_conv_new(ContextRef ctx, int64_t in, int64_t out, Shape modes,
        Maybe<ctn_spectral_conv_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_spectral_conv_new(&m, ctx.get(), in, out, detail::length<int>(modes.size()),
            modes.data(), opt.get()));
    return Module(m);
}
inline Module batch_norm_new(ContextRef ctx, int64_t channels,
        Maybe<ctn_batch_norm_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_batch_norm_new(&m, ctx.get(), channels, opt.get()));
    return Module(m);
}
inline Module decorrelated_batch_norm_new(ContextRef ctx, int64_t channels,
        Maybe<ctn_decorrelated_batch_norm_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_decorrelated_batch_norm_new(&m, ctx.get(), channels, opt.get()));
    return Module(m);
}
inline Module batch_renorm_new(ContextRef ctx, int64_t channels,
        Maybe<ctn_batch_renorm_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_batch_renorm_new(&m, ctx.get(), channels, opt.get()));
    return Module(m);
}
inline void batch_renorm_set_limits(ModuleRef m, double rmax, double dmax)
{
    detail::check(ctn_batch_renorm_set_limits(m.get(), rmax, dmax));
}
inline Module group_norm_new(ContextRef ctx, int64_t groups, int64_t channels,
        Maybe<ctn_norm_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_group_norm_new(&m, ctx.get(), groups, channels, opt.get()));
    return Module(m);
}
inline Module layer_norm_new(ContextRef ctx, Shape dims, Maybe<ctn_norm_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_layer_norm_new(&m, ctx.get(), detail::length<int>(dims.size()), dims.data(),
            opt.get()));
    return Module(m);
}
inline Module rms_norm_new(ContextRef ctx, Shape dims, Maybe<ctn_norm_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_rms_norm_new(&m, ctx.get(), detail::length<int>(dims.size()), dims.data(),
            opt.get()));
    return Module(m);
}
inline Module embedding_new(ContextRef ctx, int64_t rows, int64_t width,
        Maybe<ctn_init> weight = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_embedding_new(&m, ctx.get(), rows, width, weight.get()));
    return Module(m);
}
inline Module lstm_new(ContextRef ctx, int64_t in, int64_t hidden,
        Maybe<ctn_rnn_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_lstm_new(&m, ctx.get(), in, hidden, opt.get()));
    return Module(m);
}
inline Module gru_new(ContextRef ctx, int64_t in, int64_t hidden,
        Maybe<ctn_rnn_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_gru_new(&m, ctx.get(), in, hidden, opt.get()));
    return Module(m);
}
inline Module rnn_new(ContextRef ctx, int64_t in, int64_t hidden,
        Maybe<ctn_rnn_module_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_rnn_new(&m, ctx.get(), in, hidden, opt.get()));
    return Module(m);
}
inline Module child_sum_tree_lstm_new(ContextRef ctx, int64_t in, int64_t hidden)
{
    ctn_module *m = nullptr;
    detail::check(ctn_child_sum_tree_lstm_new(&m, ctx.get(), in, hidden));
    return Module(m);
}
inline Module nary_tree_lstm_new(ContextRef ctx, int64_t in, int64_t hidden, int64_t children)
{
    ctn_module *m = nullptr;
    detail::check(ctn_nary_tree_lstm_new(&m, ctx.get(), in, hidden, children));
    return Module(m);
}
inline Module peephole_lstm_new(ContextRef ctx, int64_t in, int64_t hidden)
{
    ctn_module *m = nullptr;
    detail::check(ctn_peephole_lstm_new(&m, ctx.get(), in, hidden));
    return Module(m);
}
inline Module crf_new(ContextRef ctx, int64_t K, Maybe<ctn_init> init = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_crf_new(&m, ctx.get(), K, init.get()));
    return Module(m);
}
inline Module graph_conv_new(ContextRef ctx, int64_t in, int64_t out,
        Maybe<ctn_graph_conv_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_graph_conv_new(&m, ctx.get(), in, out, opt.get()));
    return Module(m);
}
inline Module graph_attention_new(ContextRef ctx, int64_t in, int64_t out,
        Maybe<ctn_graph_attention_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_graph_attention_new(&m, ctx.get(), in, out, opt.get()));
    return Module(m);
}
inline Module message_passing_new(ContextRef ctx, Module edge, Module node,
        Maybe<ctn_message_passing_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_message_passing_new(&m, ctx.get(), edge.get(), node.get(), opt.get()));
    static_cast<void>(edge.release());
    static_cast<void>(node.release());
    return Module(m);
}
inline Module dropout_new(ContextRef ctx, double rate)
{
    ctn_module *m = nullptr;
    detail::check(ctn_dropout_new(&m, ctx.get(), rate));
    return Module(m);
}
inline Module max_pool_new(ContextRef ctx, Maybe<ctn_pool_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_max_pool_new(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module avg_pool_new(ContextRef ctx, Maybe<ctn_pool_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_avg_pool_new(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module flatten_new(ContextRef ctx)
{
    ctn_module *m = nullptr;
    detail::check(ctn_flatten_new(&m, ctx.get()));
    return Module(m);
}
inline Module inception_new(ContextRef ctx, int64_t channels, Maybe<ctn_inception_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_inception_new(&m, ctx.get(), channels, opt.get()));
    return Module(m);
}
inline Module inception_bn_new(ContextRef ctx, int64_t channels,
        Maybe<ctn_inception_bn_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_inception_bn_new(&m, ctx.get(), channels, opt.get()));
    return Module(m);
}
inline Module activation_new(ContextRef ctx, ctn_tensor *(*op)(const char *, ctn_tensor *))
{
    ctn_module *m = nullptr;
    detail::check(ctn_activation_new(&m, ctx.get(), op));
    return Module(m);
}
inline void lora_add(ModuleRef m, Maybe<ctn_lora_opt> opt = {})
{
    detail::check(ctn_lora_add(m.get(), opt.get()));
}
inline void lora_merge(ModuleRef m)
{
    detail::check(ctn_lora_merge(m.get()));
}
inline void weight_norm_add(ModuleRef m, Text name, int dim)
{
    detail::check(ctn_weight_norm_add(m.get(), name.get(), dim));
}
inline void spectral_norm_add(ModuleRef m, Text name, Maybe<ctn_spectral_norm_opt> opt = {})
{
    detail::check(ctn_spectral_norm_add(m.get(), name.get(), opt.get()));
}

// ---- onnx.h
inline Module onnx_open(ContextRef ctx, Text path, Maybe<ctn_onnx_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_onnx_open(&m, ctx.get(), path.get(), opt.get()));
    return Module(m);
}
inline int onnx_inputs(ModuleRef m)
{
    return ctn_onnx_inputs(m.get());
}
inline int onnx_outputs(ModuleRef m)
{
    return ctn_onnx_outputs(m.get());
}
inline ctn_onnx_port onnx_input(ModuleRef m, int i)
{
    ctn_onnx_port out = {};
    detail::check(ctn_onnx_input(m.get(), i, &out));
    return out;
}
inline ctn_onnx_port onnx_output(ModuleRef m, int i)
{
    ctn_onnx_port out = {};
    detail::check(ctn_onnx_output(m.get(), i, &out));
    return out;
}
inline std::vector<Tensor> onnx_run(ModuleRef m, Span<const Tensor> x, int ny,
        Where at = Where::here())
{
    std::vector<ctn_tensor *> y(static_cast<std::size_t>(ny));
    detail::check(ctn_onnx_run_at(at.text(), m.get(), detail::length<int>(x.size()),
            detail::pointers(x), ny, y.data()));
    return detail::objects<Tensor>(y);
}

// ---- onnx_export.h
inline void onnx_export(Text path, ctn_tensors inputs, ctn_tensors outputs,
        Maybe<ctn_onnx_export_opt> opt = {})
{
    detail::check(ctn_onnx_export(path.get(), inputs, outputs, opt.get()));
}
inline void onnx_export_module(ModuleRef m, Text path, Span<const ctn_field> in,
        Maybe<ctn_onnx_export_opt> opt = {})
{
    detail::check(ctn_onnx_export_module(m.get(), path.get(), detail::length<int>(in.size()),
            in.data(), opt.get()));
}

// ---- ops.h
[[nodiscard]] inline Tensor matmul(const Tensor &a, const Tensor &b, int trans_a = 0,
        int trans_b = 0, Where at = Where::here())
{
    return Tensor(detail::check(ctn_matmul_at(at.text(), a.get(), b.get(), trans_a, trans_b)));
}
[[nodiscard]] inline Tensor linear(const Tensor &x, const Tensor &w, const Tensor &b = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_linear_at(at.text(), x.get(), w.get(), b.get())));
}
[[nodiscard]] inline Tensor add(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_add_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor relu(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_relu_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor sum(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_sum_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), keep)));
}
[[nodiscard]] inline Tensor reshape(const Tensor &x, Shape dims, Where at = Where::here())
{
    return Tensor(detail::check(ctn_reshape_at(at.text(), x.get(),
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor transpose(const Tensor &x, Shape axes, Where at = Where::here())
{
    return Tensor(detail::check(ctn_transpose_at(at.text(), x.get(),
            detail::length<int>(axes.size()), axes.data())));
}
[[nodiscard]] inline Tensor broadcast_to(const Tensor &x, Shape dims, Where at = Where::here())
{
    return Tensor(detail::check(ctn_broadcast_to_at(at.text(), x.get(),
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor full(ContextRef ctx, double value, ctn_dtype dtype, Shape dims,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_full_at(at.text(), ctx.get(), value, dtype,
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor softmax_cross_entropy(const Tensor &x, const Tensor &t,
        Maybe<ctn_softmax_cross_entropy_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_softmax_cross_entropy_with_at(at.text(), x.get(), t.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor linear_cross_entropy(const Tensor &x, const Tensor &w,
        const Tensor &t, Maybe<ctn_softmax_cross_entropy_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_linear_cross_entropy_at(at.text(), x.get(), w.get(), t.get(),
            opt.get())));
}

// ---- ops_fft.h
[[nodiscard]] inline Tensor fft(const Tensor &x, Shape axes, ctn_fft_norm norm,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_fft_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), norm)));
}
[[nodiscard]] inline Tensor ifft(const Tensor &x, Shape axes, ctn_fft_norm norm,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_ifft_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), norm)));
}
[[nodiscard]] inline Tensor rfft(const Tensor &x, Shape axes, ctn_fft_norm norm,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_rfft_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), norm)));
}
[[nodiscard]] inline Tensor irfft(const Tensor &x, Shape axes, int64_t n_last, ctn_fft_norm norm,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_irfft_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), n_last, norm)));
}
[[nodiscard]] inline Tensor complex_mul(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_complex_mul_at(at.text(), a.get(), b.get())));
}

// ---- ops_graph.h
[[nodiscard]] inline Tensor index_select(const Tensor &x, const Tensor &index, int64_t axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_index_select_at(at.text(), x.get(), index.get(), axis)));
}
[[nodiscard]] inline Tensor index_add(const Tensor &x, const Tensor &index, const Tensor &src,
        int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_index_add_at(at.text(), x.get(), index.get(), src.get(),
            axis)));
}
[[nodiscard]] inline Tensor scatter(const Tensor &x, const Tensor &index, const Tensor &src,
        int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_scatter_at(at.text(), x.get(), index.get(), src.get(), axis)));
}
[[nodiscard]] inline Tensor segment_sum(const Tensor &x, const Tensor &ids, int64_t n,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_segment_sum_at(at.text(), x.get(), ids.get(), n)));
}
[[nodiscard]] inline Tensor segment_mean(const Tensor &x, const Tensor &ids, int64_t n,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_segment_mean_at(at.text(), x.get(), ids.get(), n)));
}
[[nodiscard]] inline Tensor segment_max(const Tensor &x, const Tensor &ids, int64_t n,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_segment_max_at(at.text(), x.get(), ids.get(), n)));
}
[[nodiscard]] inline Tensor segment_softmax(const Tensor &x, const Tensor &ids, int64_t n,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_segment_softmax_at(at.text(), x.get(), ids.get(), n)));
}
inline std::tuple<Tensor, Tensor> group_ids(const Tensor &ids, int64_t segments,
        Where at = Where::here())
{
    ctn_tensor *offsets = nullptr;
    ctn_tensor *order = nullptr;
    detail::check(ctn_group_ids_at(at.text(), ids.get(), segments, &offsets, &order));
    return {Tensor(offsets), Tensor(order)};
}
[[nodiscard]] inline Tensor spmm(const Tensor &rowptr, const Tensor &col, const Tensor &value,
        const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_spmm_at(at.text(), rowptr.get(), col.get(), value.get(),
            x.get())));
}

// ---- ops_image.h
[[nodiscard]] inline Tensor conv(const Tensor &x, const Tensor &w, const Tensor &b = {},
        Maybe<ctn_conv_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_conv_at(at.text(), x.get(), w.get(), b.get(), opt.get())));
}
[[nodiscard]] inline Tensor conv_transpose(const Tensor &x, const Tensor &w, const Tensor &b = {},
        Maybe<ctn_conv_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_conv_transpose_at(at.text(), x.get(), w.get(), b.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor im2col(const Tensor &x, Shape kernel, Maybe<ctn_conv_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_im2col_at(at.text(), x.get(),
            detail::length<int>(kernel.size()), kernel.data(), opt.get())));
}
[[nodiscard]] inline Tensor local_conv(const Tensor &x, const Tensor &w, const Tensor &b = {},
        Maybe<ctn_conv_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_local_conv_at(at.text(), x.get(), w.get(), b.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor deform_conv(const Tensor &x, const Tensor &offset, const Tensor &w,
        const Tensor &b = {}, const Tensor &mask = {}, Maybe<ctn_conv_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_deform_conv_at(at.text(), x.get(), offset.get(), w.get(),
            b.get(), mask.get(), opt.get())));
}
[[nodiscard]] inline Tensor max_pool(const Tensor &x, Maybe<ctn_pool_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_max_pool_at(at.text(), x.get(), opt.get())));
}
inline std::tuple<Tensor, Tensor> max_pool_places(const Tensor &x, Maybe<ctn_pool_opt> opt = {},
        Where at = Where::here())
{
    ctn_tensor *y = nullptr;
    ctn_tensor *places = nullptr;
    detail::check(ctn_max_pool_places_at(at.text(), x.get(), opt.get(), &y, &places));
    return {Tensor(y), Tensor(places)};
}
[[nodiscard]] inline Tensor max_unpool(const Tensor &y, const Tensor &places,
        Maybe<ctn_pool_opt> opt, Span<const int64_t> size, Where at = Where::here())
{
    return Tensor(detail::check(ctn_max_unpool_at(at.text(), y.get(), places.get(), opt.get(),
            detail::length<int>(size.size()), size.data())));
}
[[nodiscard]] inline Tensor avg_pool(const Tensor &x, Maybe<ctn_pool_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_avg_pool_at(at.text(), x.get(), opt.get())));
}
[[nodiscard]] inline Tensor global_avg_pool(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_global_avg_pool_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor adaptive_avg_pool(const Tensor &x, Span<const int64_t> size,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_adaptive_avg_pool_at(at.text(), x.get(),
            detail::length<int>(size.size()), size.data())));
}
[[nodiscard]] inline Tensor spatial_pyramid_pool(const Tensor &x, int levels,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_spatial_pyramid_pool_at(at.text(), x.get(), levels)));
}
[[nodiscard]] inline Tensor roi_align(const Tensor &x, const Tensor &rois,
        const Tensor &roi_index, Maybe<ctn_roi_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_roi_align_at(at.text(), x.get(), rois.get(), roi_index.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor roi_pool(const Tensor &x, const Tensor &rois, const Tensor &roi_index,
        Maybe<ctn_roi_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_roi_pool_at(at.text(), x.get(), rois.get(), roi_index.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor batch_norm(const Tensor &x, const Tensor &scale, const Tensor &shift,
        VarRef mean, VarRef var, Maybe<ctn_batch_norm_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_batch_norm_at(at.text(), x.get(), scale.get(), shift.get(),
            mean.get(), var.get(), opt.get())));
}
[[nodiscard]] inline Tensor decorrelated_batch_norm(const Tensor &x, VarRef mean = {},
        VarRef projection = {}, Maybe<ctn_decorrelated_batch_norm_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_decorrelated_batch_norm_at(at.text(), x.get(), mean.get(),
            projection.get(), opt.get())));
}
[[nodiscard]] inline Tensor fixed_decorrelated_batch_norm(const Tensor &x, const Tensor &mean,
        const Tensor &projection, Where at = Where::here())
{
    return Tensor(detail::check(ctn_fixed_decorrelated_batch_norm_at(at.text(), x.get(),
            mean.get(), projection.get())));
}
[[nodiscard]] inline Tensor batch_renorm(const Tensor &x, const Tensor &scale,
        const Tensor &shift, VarRef mean, VarRef var, Maybe<ctn_batch_renorm_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_batch_renorm_at(at.text(), x.get(), scale.get(), shift.get(),
            mean.get(), var.get(), opt.get())));
}
[[nodiscard]] inline Tensor channel_affine(const Tensor &x, const Tensor &a, const Tensor &b = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_channel_affine_at(at.text(), x.get(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor group_norm(const Tensor &x, int64_t groups, const Tensor &scale,
        const Tensor &shift, double eps, Where at = Where::here())
{
    return Tensor(detail::check(ctn_group_norm_at(at.text(), x.get(), groups, scale.get(),
            shift.get(), eps)));
}
[[nodiscard]] inline Tensor instance_norm(const Tensor &x, const Tensor &scale,
        const Tensor &shift, double eps, Where at = Where::here())
{
    return Tensor(detail::check(ctn_instance_norm_at(at.text(), x.get(), scale.get(), shift.get(),
            eps)));
}
[[nodiscard]] inline Tensor local_response_norm(const Tensor &x, int64_t size, double k,
        double alpha, double beta, Where at = Where::here())
{
    return Tensor(detail::check(ctn_local_response_norm_at(at.text(), x.get(), size, k, alpha,
            beta)));
}
[[nodiscard]] inline Tensor resize(const Tensor &x, ctn_resize_kind kind,
        Span<const int64_t> size, Where at = Where::here())
{
    return Tensor(detail::check(ctn_resize_at(at.text(), x.get(), kind,
            detail::length<int>(size.size()), size.data())));
}
[[nodiscard]] inline Tensor grid_sample(const Tensor &x, const Tensor &grid, int align_corners,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_grid_sample_at(at.text(), x.get(), grid.get(), align_corners)));
}
[[nodiscard]] inline Tensor affine_grid(const Tensor &theta, int64_t height, int64_t width,
        int align_corners, Where at = Where::here())
{
    return Tensor(detail::check(ctn_affine_grid_at(at.text(), theta.get(), height, width,
            align_corners)));
}
[[nodiscard]] inline Tensor depth_to_space(const Tensor &x, int64_t r, Where at = Where::here())
{
    return Tensor(detail::check(ctn_depth_to_space_at(at.text(), x.get(), r)));
}
[[nodiscard]] inline Tensor space_to_depth(const Tensor &x, int64_t r, Where at = Where::here())
{
    return Tensor(detail::check(ctn_space_to_depth_at(at.text(), x.get(), r)));
}
[[nodiscard]] inline Tensor prelu(const Tensor &x, const Tensor &slope, Where at = Where::here())
{
    return Tensor(detail::check(ctn_prelu_at(at.text(), x.get(), slope.get())));
}
[[nodiscard]] inline Tensor spatial_dropout(const Tensor &x, double rate, Where at = Where::here())
{
    return Tensor(detail::check(ctn_spatial_dropout_at(at.text(), x.get(), rate)));
}

// ---- ops_linalg.h
[[nodiscard]] inline Tensor cholesky(const Tensor &a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_cholesky_at(at.text(), a.get())));
}
[[nodiscard]] inline Tensor solve_triangular(const Tensor &a, const Tensor &b, int upper,
        int trans, int unit, Where at = Where::here())
{
    return Tensor(detail::check(ctn_solve_triangular_at(at.text(), a.get(), b.get(), upper, trans,
            unit)));
}
[[nodiscard]] inline Tensor solve(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_solve_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor inverse(const Tensor &a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_inverse_at(at.text(), a.get())));
}
[[nodiscard]] inline Tensor det(const Tensor &a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_det_at(at.text(), a.get())));
}
inline std::tuple<Tensor, Tensor> slogdet(const Tensor &a, Where at = Where::here())
{
    ctn_tensor *sign = nullptr;
    ctn_tensor *logabs = nullptr;
    detail::check(ctn_slogdet_at(at.text(), a.get(), &sign, &logabs));
    return {Tensor(sign), Tensor(logabs)};
}
[[nodiscard]] inline Tensor inverse_sqrt(const Tensor &a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_inverse_sqrt_at(at.text(), a.get())));
}
[[nodiscard]] inline Tensor lyapunov(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_lyapunov_at(at.text(), a.get(), b.get())));
}

// ---- ops_loss.h
[[nodiscard]] inline Tensor softmax(const Tensor &x, int axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_softmax_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor log_softmax(const Tensor &x, int axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log_softmax_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor sigmoid_cross_entropy(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sigmoid_cross_entropy_at(at.text(), x.get(), t.get(),
            reduction)));
}
[[nodiscard]] inline Tensor mean_squared_error(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_mean_squared_error_at(at.text(), x.get(), t.get(), reduction)));
}
[[nodiscard]] inline Tensor mean_absolute_error(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_mean_absolute_error_at(at.text(), x.get(), t.get(),
            reduction)));
}
[[nodiscard]] inline Tensor huber(const Tensor &x, const Tensor &t, double delta,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_huber_at(at.text(), x.get(), t.get(), delta, reduction)));
}
[[nodiscard]] inline Tensor bernoulli_nll(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_bernoulli_nll_at(at.text(), x.get(), t.get(), reduction)));
}
[[nodiscard]] inline Tensor poisson_nll(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_poisson_nll_at(at.text(), x.get(), t.get(), reduction)));
}
[[nodiscard]] inline Tensor gaussian_nll(const Tensor &mean, const Tensor &ln_var,
        const Tensor &t, ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_gaussian_nll_at(at.text(), mean.get(), ln_var.get(), t.get(),
            reduction)));
}
[[nodiscard]] inline Tensor gaussian_kl_divergence(const Tensor &mean, const Tensor &ln_var,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_gaussian_kl_divergence_at(at.text(), mean.get(), ln_var.get(),
            reduction)));
}
[[nodiscard]] inline Tensor kl_div(const Tensor &x, const Tensor &t,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_kl_div_at(at.text(), x.get(), t.get(), reduction)));
}
[[nodiscard]] inline Tensor hinge(const Tensor &x, const Tensor &t, int p,
        ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_hinge_at(at.text(), x.get(), t.get(), p, reduction)));
}
[[nodiscard]] inline Tensor contrastive(const Tensor &a, const Tensor &b, const Tensor &t,
        double margin, ctn_reduction reduction = CTN_MEAN, Where at = Where::here())
{
    return Tensor(detail::check(ctn_contrastive_at(at.text(), a.get(), b.get(), t.get(), margin,
            reduction)));
}
[[nodiscard]] inline Tensor triplet(const Tensor &anchor, const Tensor &positive,
        const Tensor &negative, double margin, ctn_reduction reduction = CTN_MEAN,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_triplet_at(at.text(), anchor.get(), positive.get(),
            negative.get(), margin, reduction)));
}
[[nodiscard]] inline Tensor decov(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_decov_at(at.text(), x.get())));
}
inline std::tuple<Tensor, Tensor,
        Tensor> discriminative_margin_based_clustering_loss(const Tensor &x, const Tensor &t,
        int64_t K, Maybe<ctn_clustering_opt> opt = {}, Where at = Where::here())
{
    ctn_tensor *variance = nullptr;
    ctn_tensor *distance = nullptr;
    ctn_tensor *regular = nullptr;
    detail::check(ctn_discriminative_margin_based_clustering_loss_at(at.text(), x.get(), t.get(),
            K, opt.get(), &variance, &distance, &regular));
    return {Tensor(variance), Tensor(distance), Tensor(regular)};
}
[[nodiscard]] inline Tensor accuracy(const Tensor &x, const Tensor &t, int k,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_accuracy_at(at.text(), x.get(), t.get(), k)));
}
[[nodiscard]] inline Tensor confusion_matrix(const Tensor &pred, const Tensor &t, int64_t C,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_confusion_matrix_at(at.text(), pred.get(), t.get(), C)));
}
[[nodiscard]] inline Tensor binary_accuracy(const Tensor &x, const Tensor &t,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_binary_accuracy_at(at.text(), x.get(), t.get())));
}
[[nodiscard]] inline Tensor r2_score(const Tensor &x, const Tensor &t, Where at = Where::here())
{
    return Tensor(detail::check(ctn_r2_score_at(at.text(), x.get(), t.get())));
}
inline std::tuple<Tensor, Tensor, Tensor, Tensor> classification_summary(const Tensor &confusion,
        Where at = Where::here())
{
    ctn_tensor *precision = nullptr;
    ctn_tensor *recall = nullptr;
    ctn_tensor *f1 = nullptr;
    ctn_tensor *support = nullptr;
    detail::check(ctn_classification_summary_at(at.text(), confusion.get(), &precision, &recall,
            &f1, &support));
    return {Tensor(precision), Tensor(recall), Tensor(f1), Tensor(support)};
}
[[nodiscard]] inline Tensor layer_norm(const Tensor &x, int n, const Tensor &weight,
        const Tensor &bias, double eps, Where at = Where::here())
{
    return Tensor(detail::check(ctn_layer_norm_at(at.text(), x.get(), n, weight.get(), bias.get(),
            eps)));
}
[[nodiscard]] inline Tensor rms_norm(const Tensor &x, int n, const Tensor &weight, double eps,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_rms_norm_at(at.text(), x.get(), n, weight.get(), eps)));
}
[[nodiscard]] inline Tensor dropout(const Tensor &x, double rate, Where at = Where::here())
{
    return Tensor(detail::check(ctn_dropout_at(at.text(), x.get(), rate)));
}
[[nodiscard]] inline Tensor random_normal(ContextRef ctx, double mean, double std,
        ctn_dtype dtype, Shape dims, Where at = Where::here())
{
    return Tensor(detail::check(ctn_random_normal_at(at.text(), ctx.get(), mean, std, dtype,
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor random_uniform(ContextRef ctx, double lo, double hi, ctn_dtype dtype,
        Shape dims, Where at = Where::here())
{
    return Tensor(detail::check(ctn_random_uniform_at(at.text(), ctx.get(), lo, hi, dtype,
            detail::length<int>(dims.size()), dims.data())));
}
[[nodiscard]] inline Tensor gaussian(const Tensor &mean, const Tensor &ln_var,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_gaussian_at(at.text(), mean.get(), ln_var.get())));
}
[[nodiscard]] inline Tensor gumbel_softmax(const Tensor &x, double tau, int axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_gumbel_softmax_at(at.text(), x.get(), tau, axis)));
}

// ---- ops_math.h
[[nodiscard]] inline Tensor sub(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sub_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor mul(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_mul_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor div(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_div_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor maximum(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_maximum_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor minimum(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_minimum_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor pow(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_pow_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor power(const Tensor &x, double p, Where at = Where::here())
{
    return Tensor(detail::check(ctn_power_at(at.text(), x.get(), p)));
}
[[nodiscard]] inline Tensor scale(const Tensor &x, double a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_scale_at(at.text(), x.get(), a)));
}
[[nodiscard]] inline Tensor shift(const Tensor &x, double a, Where at = Where::here())
{
    return Tensor(detail::check(ctn_shift_at(at.text(), x.get(), a)));
}
[[nodiscard]] inline Tensor clip(const Tensor &x, double lo, double hi, Where at = Where::here())
{
    return Tensor(detail::check(ctn_clip_at(at.text(), x.get(), lo, hi)));
}
[[nodiscard]] inline Tensor neg(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_neg_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor abs(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_abs_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor sign(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sign_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor square(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_square_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor sqrt(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sqrt_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor rsqrt(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_rsqrt_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor exp(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_exp_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor log(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor sin(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sin_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor cos(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_cos_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor tan(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_tan_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arcsin(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arcsin_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arccos(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arccos_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arctan(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arctan_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arctan2(const Tensor &y, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arctan2_at(at.text(), y.get(), x.get())));
}
[[nodiscard]] inline Tensor sinh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sinh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor cosh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_cosh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arcsinh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arcsinh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arccosh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arccosh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor arctanh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_arctanh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor expm1(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_expm1_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor log1p(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log1p_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor log2(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log2_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor log10(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log10_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor floor(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_floor_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor ceil(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_ceil_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor round(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_round_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor trunc(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_trunc_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor fmod(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_fmod_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor signed_power(const Tensor &x, double p, Where at = Where::here())
{
    return Tensor(detail::check(ctn_signed_power_at(at.text(), x.get(), p)));
}
[[nodiscard]] inline Tensor squared_difference(const Tensor &a, const Tensor &b,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_squared_difference_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor linear_interpolate(const Tensor &p, const Tensor &a, const Tensor &b,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_linear_interpolate_at(at.text(), p.get(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor erf(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_erf_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor erfc(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_erfc_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor erfcx(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_erfcx_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor erfinv(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_erfinv_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor erfcinv(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_erfcinv_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor ndtr(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_ndtr_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor log_ndtr(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_log_ndtr_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor ndtri(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_ndtri_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor lgamma(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_lgamma_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor digamma(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_digamma_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor polygamma(int64_t n, const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_polygamma_at(at.text(), n, x.get())));
}
[[nodiscard]] inline Tensor zeta(const Tensor &x, const Tensor &q, Where at = Where::here())
{
    return Tensor(detail::check(ctn_zeta_at(at.text(), x.get(), q.get())));
}
[[nodiscard]] inline Tensor leaky_relu(const Tensor &x, double slope, Where at = Where::here())
{
    return Tensor(detail::check(ctn_leaky_relu_at(at.text(), x.get(), slope)));
}
[[nodiscard]] inline Tensor elu(const Tensor &x, double alpha, Where at = Where::here())
{
    return Tensor(detail::check(ctn_elu_at(at.text(), x.get(), alpha)));
}
[[nodiscard]] inline Tensor sigmoid(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_sigmoid_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor tanh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_tanh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor softplus(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_softplus_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor gelu(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_gelu_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor gelu_tanh(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_gelu_tanh_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor swish(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_swish_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor selu(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_selu_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor hard_sigmoid(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_hard_sigmoid_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor hard_swish(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_hard_swish_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor mish(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_mish_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor crelu(const Tensor &x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_crelu_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor maxout(const Tensor &x, int64_t pool, int64_t axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_maxout_at(at.text(), x.get(), pool, axis)));
}
[[nodiscard]] inline Tensor rrelu(const Tensor &x, double lower, double upper,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_rrelu_at(at.text(), x.get(), lower, upper)));
}
[[nodiscard]] inline Tensor equal(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_equal_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor not_equal(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_not_equal_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor less(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_less_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor less_equal(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_less_equal_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor greater(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_greater_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor greater_equal(const Tensor &a, const Tensor &b,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_greater_equal_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor logical_and(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_logical_and_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor logical_or(const Tensor &a, const Tensor &b, Where at = Where::here())
{
    return Tensor(detail::check(ctn_logical_or_at(at.text(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor logical_not(const Tensor &x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_logical_not_at(at.text(), x.get())));
}
[[nodiscard]] inline Tensor where(const Tensor &cond, const Tensor &a, const Tensor &b,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_where_at(at.text(), cond.get(), a.get(), b.get())));
}
[[nodiscard]] inline Tensor cast(const Tensor &x, ctn_dtype dtype, Where at = Where::here())
{
    return Tensor(detail::check(ctn_cast_at(at.text(), x.get(), dtype)));
}

// ---- ops_sequence.h
[[nodiscard]] inline Tensor attention(const Tensor &q, const Tensor &k, const Tensor &v,
        const Tensor &mask = {}, Maybe<ctn_attention_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_attention_at(at.text(), q.get(), k.get(), v.get(), mask.get(),
            opt.get())));
}
[[nodiscard]] inline Tensor rotary(const Tensor &x, Maybe<ctn_rotary_opt> opt = {},
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_rotary_at(at.text(), x.get(), opt.get())));
}
inline std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor &x, const ctn_rnn_weights &w,
        Maybe<ctn_rnn_opt> opt = {}, Where at = Where::here())
{
    ctn_tensor *y = nullptr;
    ctn_tensor *h = nullptr;
    ctn_tensor *c = nullptr;
    detail::check(ctn_lstm_at(at.text(), x.get(), &w, opt.get(), &y, &h, &c));
    return {Tensor(y), Tensor(h), Tensor(c)};
}
inline std::tuple<Tensor, Tensor> gru(const Tensor &x, const ctn_rnn_weights &w,
        Maybe<ctn_rnn_opt> opt = {}, Where at = Where::here())
{
    ctn_tensor *y = nullptr;
    ctn_tensor *h = nullptr;
    detail::check(ctn_gru_at(at.text(), x.get(), &w, opt.get(), &y, &h));
    return {Tensor(y), Tensor(h)};
}
inline std::tuple<Tensor, Tensor> rnn(const Tensor &x, const ctn_rnn_weights &w,
        Maybe<ctn_rnn_opt> opt = {}, Where at = Where::here())
{
    ctn_tensor *y = nullptr;
    ctn_tensor *h = nullptr;
    detail::check(ctn_rnn_at(at.text(), x.get(), &w, opt.get(), &y, &h));
    return {Tensor(y), Tensor(h)};
}
inline std::tuple<Tensor, Tensor> tree_lstm(Span<const Tensor> c, const Tensor &x,
        Where at = Where::here())
{
    ctn_tensor *h = nullptr;
    ctn_tensor *c_new = nullptr;
    detail::check(ctn_tree_lstm_at(at.text(), detail::length<int>(c.size()), detail::pointers(c),
            x.get(), &h, &c_new));
    return {Tensor(h), Tensor(c_new)};
}
inline std::tuple<Tensor, Tensor> slstm(const Tensor &c1, const Tensor &c2, const Tensor &x1,
        const Tensor &x2, Where at = Where::here())
{
    ctn_tensor *h = nullptr;
    ctn_tensor *c_new = nullptr;
    detail::check(ctn_slstm_at(at.text(), c1.get(), c2.get(), x1.get(), x2.get(), &h, &c_new));
    return {Tensor(h), Tensor(c_new)};
}
[[nodiscard]] inline Tensor ctc_loss(const Tensor &x, const Tensor &labels,
        Maybe<ctn_ctc_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_ctc_loss_at(at.text(), x.get(), labels.get(), opt.get())));
}
[[nodiscard]] inline Tensor crf_loss(const Tensor &cost, const Tensor &x, const Tensor &labels,
        Maybe<ctn_crf_opt> opt = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_crf_loss_at(at.text(), cost.get(), x.get(), labels.get(),
            opt.get())));
}
inline std::tuple<Tensor, Tensor> crf_decode(const Tensor &cost, const Tensor &x,
        const Tensor &lengths = {}, Where at = Where::here())
{
    ctn_tensor *path = nullptr;
    ctn_tensor *score = nullptr;
    detail::check(ctn_crf_decode_at(at.text(), cost.get(), x.get(), lengths.get(), &path, &score));
    return {Tensor(path), Tensor(score)};
}

// ---- ops_shape.h
[[nodiscard]] inline Tensor mean(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_mean_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), keep)));
}
[[nodiscard]] inline Tensor max(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_max_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), keep)));
}
[[nodiscard]] inline Tensor min(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_min_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), keep)));
}
[[nodiscard]] inline Tensor prod(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_prod_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), keep)));
}
[[nodiscard]] inline Tensor logsumexp(const Tensor &x, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_logsumexp_at(at.text(), x.get(),
            detail::length<int>(axes.size()), axes.data(), keep)));
}
[[nodiscard]] inline Tensor variance(const Tensor &x, Shape axes, int correction, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_variance_at(at.text(), x.get(),
            detail::length<int>(axes.size()), axes.data(), correction, keep)));
}
[[nodiscard]] inline Tensor std(const Tensor &x, Shape axes, int correction, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_std_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data(), correction, keep)));
}
[[nodiscard]] inline Tensor norm(const Tensor &x, double p, Shape axes = {}, int keep = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_norm_at(at.text(), x.get(), p,
            detail::length<int>(axes.size()), axes.data(), keep)));
}
[[nodiscard]] inline Tensor average(const Tensor &x, const Tensor &weights = {}, Shape axes = {},
        int keep = 0, Where at = Where::here())
{
    return Tensor(detail::check(ctn_average_at(at.text(), x.get(), weights.get(),
            detail::length<int>(axes.size()), axes.data(), keep)));
}
[[nodiscard]] inline Tensor argmax(const Tensor &x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_argmax_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor argmin(const Tensor &x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_argmin_at(at.text(), x.get(), axis)));
}
inline std::tuple<Tensor, Tensor> topk(const Tensor &x, int64_t k, int64_t axis,
        Where at = Where::here())
{
    ctn_tensor *values = nullptr;
    ctn_tensor *indices = nullptr;
    detail::check(ctn_topk_at(at.text(), x.get(), k, axis, &values, &indices));
    return {Tensor(values), Tensor(indices)};
}
[[nodiscard]] inline Tensor cumsum(const Tensor &x, int64_t axis, int reverse = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_cumsum_at(at.text(), x.get(), axis, reverse)));
}
inline std::tuple<Tensor, Tensor> sort(const Tensor &x, int64_t axis, int descending,
        Where at = Where::here())
{
    ctn_tensor *values = nullptr;
    ctn_tensor *indices = nullptr;
    detail::check(ctn_sort_at(at.text(), x.get(), axis, descending, &values, &indices));
    return {Tensor(values), Tensor(indices)};
}
[[nodiscard]] inline Tensor argsort(const Tensor &x, int64_t axis, int descending,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_argsort_at(at.text(), x.get(), axis, descending)));
}
[[nodiscard]] inline Tensor cumprod(const Tensor &x, int64_t axis, int reverse = 0,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_cumprod_at(at.text(), x.get(), axis, reverse)));
}
[[nodiscard]] inline Tensor normalize(const Tensor &x, int64_t axis, double eps,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_normalize_at(at.text(), x.get(), axis, eps)));
}
[[nodiscard]] inline Tensor cosine_similarity(const Tensor &a, const Tensor &b, int64_t axis,
        double eps, Where at = Where::here())
{
    return Tensor(detail::check(ctn_cosine_similarity_at(at.text(), a.get(), b.get(), axis, eps)));
}
[[nodiscard]] inline Tensor cross_covariance(const Tensor &x, const Tensor &y,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_cross_covariance_at(at.text(), x.get(), y.get())));
}
[[nodiscard]] inline Tensor one_hot(const Tensor &index, int64_t classes, ctn_dtype dtype,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_one_hot_at(at.text(), index.get(), classes, dtype)));
}
[[nodiscard]] inline Tensor gather(const Tensor &x, const Tensor &index, int64_t axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_gather_at(at.text(), x.get(), index.get(), axis)));
}
[[nodiscard]] inline Tensor scatter_add(const Tensor &x, const Tensor &index, const Tensor &src,
        int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_scatter_add_at(at.text(), x.get(), index.get(), src.get(),
            axis)));
}
[[nodiscard]] inline Tensor embedding(const Tensor &table, const Tensor &index,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_embedding_at(at.text(), table.get(), index.get())));
}
[[nodiscard]] inline Tensor select_item(const Tensor &x, const Tensor &t, Where at = Where::here())
{
    return Tensor(detail::check(ctn_select_item_at(at.text(), x.get(), t.get())));
}
[[nodiscard]] inline Tensor permutate(const Tensor &x, const Tensor &index, int64_t axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_permutate_at(at.text(), x.get(), index.get(), axis)));
}
[[nodiscard]] inline Tensor masked_fill(const Tensor &x, const Tensor &mask, double value,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_masked_fill_at(at.text(), x.get(), mask.get(), value)));
}
[[nodiscard]] inline Tensor concat(Span<const Tensor> x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_concat_at(at.text(), detail::length<int>(x.size()),
            detail::pointers(x), axis)));
}
[[nodiscard]] inline Tensor stack(Span<const Tensor> x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_stack_at(at.text(), detail::length<int>(x.size()),
            detail::pointers(x), axis)));
}
inline std::vector<Tensor> split(const Tensor &x, int64_t axis, Span<const int64_t> sizes,
        Where at = Where::here())
{
    std::vector<ctn_tensor *> out(sizes.size());
    detail::check(ctn_split_at(at.text(), x.get(), axis, detail::length<int>(sizes.size()),
            sizes.data(), out.data()));
    return detail::objects<Tensor>(out);
}
[[nodiscard]] inline Tensor slice(const Tensor &x, int64_t axis, int64_t start, int64_t length,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_slice_at(at.text(), x.get(), axis, start, length)));
}
[[nodiscard]] inline Tensor slice_step(const Tensor &x, int64_t axis, int64_t start,
        int64_t length, int64_t stride, Where at = Where::here())
{
    return Tensor(detail::check(ctn_slice_step_at(at.text(), x.get(), axis, start, length,
            stride)));
}
[[nodiscard]] inline Tensor as_strided(const Tensor &x, Shape dims, Span<const int64_t> strides,
        int64_t offset, Where at = Where::here())
{
    detail::same_length("as_strided: strides", strides.size(),
            detail::length<int64_t>(dims.size()), "as many as dims");
    return Tensor(detail::check(ctn_as_strided_at(at.text(), x.get(),
            detail::length<int>(dims.size()), dims.data(), strides.data(), offset)));
}
[[nodiscard]] inline Tensor select(const Tensor &x, int64_t axis, int64_t index,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_select_at(at.text(), x.get(), axis, index)));
}
inline std::vector<Tensor> separate(const Tensor &x, int64_t axis, int n, Where at = Where::here())
{
    std::vector<ctn_tensor *> out(static_cast<std::size_t>(n));
    detail::check(ctn_separate_at(at.text(), x.get(), axis, n, out.data()));
    return detail::objects<Tensor>(out);
}
[[nodiscard]] inline Tensor pad(const Tensor &x, Span<const int64_t> before,
        Span<const int64_t> after, double value, Where at = Where::here())
{
    if (before.size()) detail::same_length("pad: before", before.size(), ctn_ndim(x.get()),
            "one per dimension of x");
    if (after.size()) detail::same_length("pad: after", after.size(), ctn_ndim(x.get()),
            "one per dimension of x");
    return Tensor(detail::check(ctn_pad_at(at.text(), x.get(),
            before.size() ? before.data() : nullptr, after.size() ? after.data() : nullptr,
            value)));
}
[[nodiscard]] inline Tensor pad_by(const Tensor &x, ctn_pad_mode mode,
        Span<const int64_t> before = {}, Span<const int64_t> after = {}, Where at = Where::here())
{
    if (before.size()) detail::same_length("pad_by: before", before.size(), ctn_ndim(x.get()),
            "one per dimension of x");
    if (after.size()) detail::same_length("pad_by: after", after.size(), ctn_ndim(x.get()),
            "one per dimension of x");
    return Tensor(detail::check(ctn_pad_by_at(at.text(), x.get(), mode,
            before.size() ? before.data() : nullptr, after.size() ? after.data() : nullptr)));
}
[[nodiscard]] inline Tensor tril(const Tensor &x, int64_t diagonal = 0, Where at = Where::here())
{
    return Tensor(detail::check(ctn_tril_at(at.text(), x.get(), diagonal)));
}
[[nodiscard]] inline Tensor put_rows(const Tensor &x, const Tensor &y, const Tensor &first,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_put_rows_at(at.text(), x.get(), y.get(), first.get())));
}
[[nodiscard]] inline Tensor squeeze(const Tensor &x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_squeeze_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor unsqueeze(const Tensor &x, int64_t axis, Where at = Where::here())
{
    return Tensor(detail::check(ctn_unsqueeze_at(at.text(), x.get(), axis)));
}
[[nodiscard]] inline Tensor flip(const Tensor &x, Shape axes = {}, Where at = Where::here())
{
    return Tensor(detail::check(ctn_flip_at(at.text(), x.get(), detail::length<int>(axes.size()),
            axes.data())));
}
[[nodiscard]] inline Tensor roll(const Tensor &x, int64_t axis, int64_t shift,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_roll_at(at.text(), x.get(), axis, shift)));
}
[[nodiscard]] inline Tensor repeat(const Tensor &x, int64_t n, int64_t axis,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_repeat_at(at.text(), x.get(), n, axis)));
}
[[nodiscard]] inline Tensor tile(const Tensor &x, Span<const int64_t> reps,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_tile_at(at.text(), x.get(), detail::length<int>(reps.size()),
            reps.data())));
}
[[nodiscard]] inline Tensor moveaxis(const Tensor &x, int64_t from, int64_t to,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_moveaxis_at(at.text(), x.get(), from, to)));
}
[[nodiscard]] inline Tensor swapaxes(const Tensor &x, int64_t i, int64_t j,
        Where at = Where::here())
{
    return Tensor(detail::check(ctn_swapaxes_at(at.text(), x.get(), i, j)));
}
[[nodiscard]] inline Tensor diagonal(const Tensor &x, int64_t offset, Where at = Where::here())
{
    return Tensor(detail::check(ctn_diagonal_at(at.text(), x.get(), offset)));
}
[[nodiscard]] inline Tensor diag_embed(const Tensor &x, int64_t offset, Where at = Where::here())
{
    return Tensor(detail::check(ctn_diag_embed_at(at.text(), x.get(), offset)));
}
[[nodiscard]] inline Tensor einsum(Text equation, Span<const Tensor> x, Where at = Where::here())
{
    return Tensor(detail::check(ctn_einsum_at(at.text(), equation.get(),
            detail::length<int>(x.size()), detail::pointers(x))));
}
[[nodiscard]] inline Tensor tensordot(const Tensor &a, const Tensor &b,
        Span<const int64_t> axes_a, Span<const int64_t> axes_b, Where at = Where::here())
{
    detail::same_length("tensordot: axes_b", axes_b.size(),
            detail::length<int64_t>(axes_a.size()), "as many as axes_a");
    return Tensor(detail::check(ctn_tensordot_at(at.text(), a.get(), b.get(),
            detail::length<int>(axes_a.size()), axes_a.data(), axes_b.data())));
}

// ---- optim.h
inline Optim sgd_new(ctn_vars vars, Maybe<ctn_sgd_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_sgd_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adam_new(ctn_vars vars, Maybe<ctn_adam_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adam_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adamw_new(ctn_vars vars, Maybe<ctn_adam_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adamw_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim rmsprop_new(ctn_vars vars, Maybe<ctn_rmsprop_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_rmsprop_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adagrad_new(ctn_vars vars, Maybe<ctn_adagrad_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adagrad_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adadelta_new(ctn_vars vars, Maybe<ctn_adadelta_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adadelta_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adamax_new(ctn_vars vars, Maybe<ctn_adamax_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adamax_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim nadam_new(ctn_vars vars, Maybe<ctn_nadam_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_nadam_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim radam_new(ctn_vars vars, Maybe<ctn_radam_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_radam_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim lion_new(ctn_vars vars, Maybe<ctn_lion_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_lion_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim lamb_new(ctn_vars vars, Maybe<ctn_lamb_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_lamb_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim lars_new(ctn_vars vars, Maybe<ctn_lars_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_lars_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adabound_new(ctn_vars vars, Maybe<ctn_adabound_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adabound_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim smorms3_new(ctn_vars vars, Maybe<ctn_smorms3_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_smorms3_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim msvag_new(ctn_vars vars, Maybe<ctn_msvag_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_msvag_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim adafactor_new(ctn_vars vars, Maybe<ctn_adafactor_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_adafactor_new(&o, vars, opt.get()));
    return Optim(o);
}
inline Optim lbfgs_new(ctn_vars vars, Maybe<ctn_lbfgs_opt> opt = {})
{
    ctn_optim *o = nullptr;
    detail::check(ctn_lbfgs_new(&o, vars, opt.get()));
    return Optim(o);
}
inline double lbfgs_step(OptimRef o, ctn_closure_fn closure, void *user = nullptr)
{
    double loss = 0;
    detail::check(ctn_lbfgs_step(o.get(), closure, user, &loss));
    return loss;
}
inline void OptimRef::backward(const Tensor &loss, Where at) const
{
    detail::check(ctn_backward_at(at.text(), get(), loss.get()));
}
inline void OptimRef::step(Where at) const
{
    detail::check(ctn_optim_step_at(at.text(), get()));
}
inline int OptimRef::group(Text pattern, Maybe<ctn_group_opt> opt) const
{
    return detail::check_number(ctn_optim_group(get(), pattern.get(), opt.get()));
}
inline double OptimRef::lr() const
{
    return ctn_optim_lr(get());
}
inline void OptimRef::set_lr(double lr) const
{
    ctn_optim_set_lr(get(), lr);
}
inline double OptimRef::hyper(Text name) const
{
    return ctn_optim_hyper(get(), name.get());
}
inline void OptimRef::set_hyper(Text name, double value) const
{
    detail::check(ctn_optim_set_hyper(get(), name.get(), value));
}
inline void OptimRef::set_clip(double max) const
{
    ctn_optim_set_clip(get(), max);
}
inline void OptimRef::set_clip_value(double max) const
{
    ctn_optim_set_clip_value(get(), max);
}
inline void OptimRef::set_lasso(double rate) const
{
    ctn_optim_set_lasso(get(), rate);
}
inline void OptimRef::set_noise(double eta, double gamma, uint64_t seed) const
{
    ctn_optim_set_noise(get(), eta, gamma, seed);
}
inline void OptimRef::set_skip_nonfinite(int on) const
{
    ctn_optim_set_skip_nonfinite(get(), on);
}
inline double OptimRef::norm() const
{
    return ctn_optim_norm(get());
}
inline int64_t OptimRef::steps() const
{
    return ctn_optim_steps(get());
}
inline void OptimRef::set_loss_scale(Maybe<ctn_loss_scale_opt> opt) const
{
    detail::check(ctn_optim_set_loss_scale(get(), opt.get()));
}
inline double OptimRef::loss_scale() const
{
    return ctn_optim_loss_scale(get());
}
inline int64_t OptimRef::skipped() const
{
    return ctn_optim_skipped(get());
}
inline double sched_factor(const ctn_sched_opt &s, int64_t step)
{
    return ctn_sched_factor(&s, step);
}
inline void OptimRef::set_schedule(Maybe<ctn_sched_opt> s) const
{
    detail::check(ctn_optim_set_schedule(get(), s.get()));
}

// ---- tensor.h
inline size_t dtype_size(ctn_dtype t)
{
    return ctn_dtype_size(t);
}
inline const char *dtype_name(ctn_dtype t)
{
    return ctn_dtype_name(t);
}

// ---- text.h
inline Tokenizer::Tokenizer(Text path, Maybe<ctn_tokenizer_opt> opt)
{
    ctn_tokenizer *t = nullptr;
    detail::check(ctn_tokenizer_open(&t, path.get(), opt.get()));
    reset(t);
}
inline std::vector<int32_t> TokenizerRef::encode(std::string_view text) const
{
    std::vector<int32_t> ids{};
    detail::grow(ids, [&] { return ctn_tokenizer_encode(get(), text.data(), text.size(),
            ids.data(), ids.size()); });
    return ids;
}
inline std::string TokenizerRef::decode(Span<const int32_t> ids) const
{
    std::string text{};
    detail::grow_text(text, [&] { return ctn_tokenizer_decode(get(), ids.data(), ids.size(),
            text.data(), text.size()); });
    return text;
}
inline std::string TokenizerRef::decode_next(ctn_decode_state &state, int32_t id) const
{
    std::string text{};
    detail::grow_text(text, [&] { return ctn_tokenizer_decode_next(get(), &state, id, text.data(),
            text.size()); });
    return text;
}
inline int64_t TokenizerRef::tokens() const
{
    return ctn_tokenizer_tokens(get());
}
inline std::string_view TokenizerRef::token(int64_t id) const
{
    size_t bytes = 0;
    const auto found = ctn_tokenizer_token(get(), id, &bytes);
    return found ? std::string_view(found, bytes) : std::string_view();
}
inline int32_t TokenizerRef::id(std::string_view text) const
{
    return ctn_tokenizer_id(get(), text.data(), text.size());
}
inline int TokenizerRef::special(int64_t id) const
{
    return ctn_tokenizer_special(get(), id);
}
inline int32_t TokenizerRef::end() const
{
    return ctn_tokenizer_end(get());
}
inline std::optional<int32_t> TokenizerRef::around(int after, int room) const
{
    int32_t ids = 0;
    const auto found = ctn_tokenizer_around(get(), after, &ids, room);
    return found ? std::optional<int32_t>(ids) : std::nullopt;
}
inline std::string TokenizerRef::chat(std::string_view messages, Maybe<ctn_chat_opt> opt) const
{
    std::string text{};
    detail::grow_text(text, [&] { return ctn_tokenizer_chat(get(), messages.data(),
            messages.size(), opt.get(), text.data(), text.size()); });
    return text;
}
inline int64_t tokens_pack(TokenizerRef t, Span<const char *const> path, Text out,
        Maybe<ctn_tokens_pack_opt> opt = {})
{
    int64_t tokens = 0;
    detail::check(ctn_tokens_pack(t.get(), detail::length<int>(path.size()), path.data(),
            out.get(), &tokens, opt.get()));
    return tokens;
}

// ---- train.h
inline ContextRef StepRef::context() const
{
    return ContextRef(detail::check_borrowed(ctn_step_context(get())));
}
inline const ctn_batch *StepRef::batch() const
{
    return ctn_step_batch(get());
}
inline Tensor StepRef::input(int f, Where at) const
{
    return Tensor(detail::check(ctn_step_input_at(at.text(), get(), f)));
}
inline void StepRef::report(Text name, const Tensor &value) const
{
    detail::check(ctn_report(get(), name.get(), value.get()));
}
inline void report_ratio(StepRef s, Text name, const Tensor &above, const Tensor &below)
{
    detail::check(ctn_report_ratio(s.get(), name.get(), above.get(), below.get()));
}
inline void report_weight(StepRef s, double weight)
{
    detail::check(ctn_report_weight(s.get(), weight));
}
inline void report_targets(StepRef s, int f, int64_t ignore)
{
    detail::check(ctn_report_targets(s.get(), f, ignore));
}
inline void report_metric(StepRef s, Text name, Text metric, const Tensor &y, const Tensor &t)
{
    detail::check(ctn_report_metric(s.get(), name.get(), metric.get(), y.get(), t.get()));
}
inline const char *const *metric_names()
{
    return ctn_metric_names();
}
inline void TrainerRef::add_optim(Text name, OptimRef opt, ctn_loss_fn loss, void *self) const
{
    detail::check(ctn_trainer_add_optim(get(), name.get(), opt.get(), loss, self));
}
inline void TrainerRef::run() const
{
    detail::check(ctn_trainer_run(get()));
}
inline void TrainerRef::stop(const char *why) const
{
    ctn_trainer_stop(get(), why);
}
inline const char *TrainerRef::stopped() const
{
    return ctn_trainer_stopped(get());
}
inline ctn_progress TrainerRef::progress() const
{
    ctn_progress out = {};
    ctn_trainer_progress(get(), &out);
    return out;
}
inline OptimRef TrainerRef::optim() const
{
    return OptimRef(detail::check_borrowed(ctn_trainer_optim(get())));
}
inline LoaderRef TrainerRef::loader() const
{
    return LoaderRef(detail::check_borrowed(ctn_trainer_loader(get())));
}
inline ModuleRef TrainerRef::net() const
{
    return ModuleRef(detail::check_borrowed(ctn_trainer_net(get())));
}
inline const char *TrainerRef::out() const
{
    return ctn_trainer_out(get());
}
inline ContextRef TrainerRef::context() const
{
    return ContextRef(detail::check_borrowed(ctn_trainer_context(get())));
}
inline void TrainerRef::observe(Text name, double value) const
{
    detail::check(ctn_trainer_observe(get(), name.get(), value));
}
inline std::optional<double> TrainerRef::value(Text name) const
{
    double value = 0;
    const auto found = ctn_trainer_value(get(), name.get(), &value);
    return found ? std::optional<double>(value) : std::nullopt;
}
inline const char *TrainerRef::name(int i) const
{
    return ctn_trainer_name(get(), i);
}
inline int64_t TrainerRef::rows() const
{
    return ctn_trainer_rows(get());
}
inline double TrainerRef::row_value(int64_t row, Text name) const
{
    return ctn_trainer_row_value(get(), row, name.get());
}
inline ctn_progress TrainerRef::row_progress(int64_t row) const
{
    ctn_progress out = {};
    ctn_trainer_row_progress(get(), row, &out);
    return out;
}
inline void TrainerRef::extend(const ctn_extension &e) const
{
    detail::check(ctn_trainer_extend(get(), &e));
}
inline void extend_log(TrainerRef tr, Maybe<ctn_trigger> when = {}, Text file = {})
{
    detail::check(ctn_extend_log(tr.get(), when.get(), file.get()));
}
inline void extend_progress(TrainerRef tr, Maybe<ctn_trigger> when = {},
        Maybe<ctn_show_opt> opt = {})
{
    detail::check(ctn_extend_progress(tr.get(), when.get(), opt.get()));
}
inline void extend_print(TrainerRef tr, Maybe<ctn_trigger> when = {}, const Names &names = {},
        Maybe<ctn_show_opt> opt = {})
{
    detail::check(ctn_extend_print(tr.get(), when.get(), names.get(), opt.get()));
}
inline void extend_plot(TrainerRef tr, Maybe<ctn_trigger> when, const Names &names, Text file)
{
    detail::check(ctn_extend_plot(tr.get(), when.get(), names.get(), file.get()));
}
inline void extend_tensorboard(TrainerRef tr, Maybe<ctn_trigger> when, Text dir)
{
    detail::check(ctn_extend_tensorboard(tr.get(), when.get(), dir.get()));
}
inline void extend_html(TrainerRef tr, Maybe<ctn_trigger> when, Text file, Text title,
        const Names &facts)
{
    detail::check(ctn_extend_html(tr.get(), when.get(), file.get(), title.get(), facts.get()));
}
inline void extend_schedule(TrainerRef tr, Text hyper, const ctn_sched_opt &s)
{
    detail::check(ctn_extend_schedule(tr.get(), hyper.get(), &s));
}
inline void extend_plateau(TrainerRef tr, Maybe<ctn_trigger> when, Text hyper,
        Maybe<ctn_patience_opt> opt = {})
{
    detail::check(ctn_extend_plateau(tr.get(), when.get(), hyper.get(), opt.get()));
}
inline void extend_early_stop(TrainerRef tr, Maybe<ctn_trigger> when = {},
        Maybe<ctn_patience_opt> opt = {})
{
    detail::check(ctn_extend_early_stop(tr.get(), when.get(), opt.get()));
}
inline void extend_param_stats(TrainerRef tr, Maybe<ctn_trigger> when = {}, Text pattern = {})
{
    detail::check(ctn_extend_param_stats(tr.get(), when.get(), pattern.get()));
}
inline void extend_param_plot(TrainerRef tr, Maybe<ctn_trigger> when, Text pattern, Text file)
{
    detail::check(ctn_extend_param_plot(tr.get(), when.get(), pattern.get(), file.get()));
}
inline void extend_fail_on_nonfinite(TrainerRef tr, Maybe<ctn_trigger> when = {})
{
    detail::check(ctn_extend_fail_on_nonfinite(tr.get(), when.get()));
}
inline void extend_on_nonfinite(TrainerRef tr, Maybe<ctn_trigger> when = {},
        Maybe<ctn_nonfinite_opt> opt = {})
{
    detail::check(ctn_extend_on_nonfinite(tr.get(), when.get(), opt.get()));
}
inline void extend_spikes(TrainerRef tr, Maybe<ctn_spike_opt> opt = {})
{
    detail::check(ctn_extend_spikes(tr.get(), opt.get()));
}
inline void extend_unfreeze(TrainerRef tr, int64_t epoch, Text pattern, int statistics)
{
    detail::check(ctn_extend_unfreeze(tr.get(), epoch, pattern.get(), statistics));
}
inline void extend_average(TrainerRef tr, double rate)
{
    detail::check(ctn_extend_average(tr.get(), rate));
}
inline void extend_swa(TrainerRef tr, int64_t start, int64_t every)
{
    detail::check(ctn_extend_swa(tr.get(), start, every));
}
inline void extend_weights(TrainerRef tr, Maybe<ctn_trigger> when = {}, Text file = {})
{
    detail::check(ctn_extend_weights(tr.get(), when.get(), file.get()));
}
inline void extend_replicas(TrainerRef tr, Maybe<ctn_trigger> when = {})
{
    detail::check(ctn_extend_replicas(tr.get(), when.get()));
}
inline void extend_state(TrainerRef tr, Maybe<ctn_trigger> when = {})
{
    detail::check(ctn_extend_state(tr.get(), when.get()));
}
inline void TrainerRef::save(Text dir) const
{
    detail::check(ctn_trainer_save(get(), dir.get()));
}
inline void TrainerRef::load(Text dir) const
{
    detail::check(ctn_trainer_load(get(), dir.get()));
}
inline Memory::Memory()
{
    ctn_memory *out = nullptr;
    detail::check(ctn_memory_new(&out));
    reset(out);
}
inline void extend_memory(TrainerRef tr, const ctn_trigger &when, MemoryRef m)
{
    detail::check(ctn_extend_memory(tr.get(), &when, m.get()));
}
inline void TrainerRef::recall(MemoryRef m) const
{
    detail::check(ctn_trainer_recall(get(), m.get()));
}
inline void states_visit(Text dir, ctn_state_info_fn fn, void *user = nullptr)
{
    detail::check(ctn_states_visit(dir.get(), fn, user));
}
inline void state_verify(Text path, ctn_text_fn fn = nullptr, void *user = nullptr)
{
    detail::check(ctn_state_verify(path.get(), fn, user));
}
inline void state_arrays(Text path, ctn_state_array_fn fn, void *user = nullptr)
{
    detail::check(ctn_state_arrays(path.get(), fn, user));
}
inline void states_prune(Text dir, int64_t keep = 0)
{
    detail::check(ctn_states_prune(dir.get(), keep));
}
inline void state_export(Text path, Text file)
{
    detail::check(ctn_state_export(path.get(), file.get()));
}

// ---- tune.h
inline std::string tune_folder()
{
    std::string buf{};
    detail::grow_text(buf, [&] { return ctn_tune_folder(buf.data(), buf.size()); });
    return buf;
}
inline int64_t tune_clear()
{
    int64_t files = 0;
    detail::check(ctn_tune_clear(&files));
    return files;
}

// ---- zoo.h
inline Module zoo_new(ContextRef ctx, Text name, Maybe<ctn_zoo_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_new(&m, ctx.get(), name.get(), opt.get()));
    return Module(m);
}
inline const char *const *zoo_names()
{
    return ctn_zoo_names();
}
inline Module zoo_mlp(ContextRef ctx, Maybe<ctn_mlp_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_mlp(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_lenet5(ContextRef ctx, Maybe<ctn_lenet5_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_lenet5(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_resnet(ContextRef ctx, Maybe<ctn_resnet_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_resnet(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_resnet_cifar(ContextRef ctx, Maybe<ctn_resnet_cifar_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_resnet_cifar(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_mobilenet_v2(ContextRef ctx, Maybe<ctn_mobilenet_v2_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_mobilenet_v2(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_vgg(ContextRef ctx, Maybe<ctn_vgg_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_vgg(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_googlenet(ContextRef ctx, Maybe<ctn_googlenet_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_googlenet(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_unet(ContextRef ctx, Maybe<ctn_unet_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_unet(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_fno(ContextRef ctx, Maybe<ctn_fno_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_fno(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_gpt(ContextRef ctx, Maybe<ctn_gpt_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_gpt(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_llama(ContextRef ctx, Maybe<ctn_llama_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_llama(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_bert(ContextRef ctx, Maybe<ctn_bert_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_bert(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_vit(ContextRef ctx, Maybe<ctn_vit_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_vit(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_seq2seq(ContextRef ctx, Maybe<ctn_seq2seq_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_seq2seq(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_gcn(ContextRef ctx, Maybe<ctn_gcn_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_gcn(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_gat(ContextRef ctx, Maybe<ctn_gat_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_gat(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_meshgraphnet(ContextRef ctx, Maybe<ctn_meshgraphnet_opt> opt = {})
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_meshgraphnet(&m, ctx.get(), opt.get()));
    return Module(m);
}
inline Module zoo_open(ContextRef ctx, Text path)
{
    ctn_module *m = nullptr;
    detail::check(ctn_zoo_open(&m, ctx.get(), path.get()));
    return Module(m);
}

} // namespace catena
// clang-format on
#endif

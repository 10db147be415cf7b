! SPDX-License-Identifier: Apache-2.0
!
! The C interface of Catena for Fortran: every public function, struct, enum and constant, under its
! name in C. dev/interface writes this file from the public headers; docs/reference explains the
! functions. Module catena (catena.f90) is easier to use, but covers less.
!
! - A handle is a type that holds the pointer: ctn_tensor() is NULL.
! - An optional argument that is left out is NULL.
! - Text that is passed to C ends with c_null_char. Text that C returns or keeps is a c_ptr.
! - `at` is such a text, which messages show instead of a source line. It must live as long as the
!   context.
! - The type of an options struct sets struct_size by itself, and all other fields to 0.
! - Callbacks are procedures with bind(C) and the interface of the same name; pass c_funloc(f).
module catena_c
    use, intrinsic :: iso_c_binding
    implicit none
    public

    ! ---- constants
    integer(c_int), parameter :: CTN_VERSION_MAJOR = 0
    integer(c_int), parameter :: CTN_VERSION_MINOR = 1
    integer(c_int), parameter :: CTN_VERSION_PATCH = 0
    integer(c_int), parameter :: CTN_HEADER_VERSION = 100
    integer(c_int), parameter :: CTN_DATA_FIELDS = 8
    integer(c_int), parameter :: CTN_RAGGED = -1
    integer(c_int), parameter :: CTN_MODEL_ABI = 1
    integer(c_int), parameter :: CTN_MAX_TENSORS = 8
    integer(c_int), parameter :: CTN_MAX_IN = 16
    integer(c_int), parameter :: CTN_MAX_OUT = 16
    integer(c_int), parameter :: CTN_MAX_SPATIAL = 3
    integer(c_int), parameter :: CTN_PAD_NONE = -1
    integer(c_int), parameter :: CTN_SCHED_AT = 16
    integer(c_int), parameter :: CTN_MAX_DIMS = 8
    integer(c_int), parameter :: CTN_TRIGGER_AT = 16

    ! ctn_status
    integer(c_int), parameter :: CTN_OK = 0
    integer(c_int), parameter :: CTN_END = 1
    integer(c_int), parameter :: CTN_ENOMEM = -1
    integer(c_int), parameter :: CTN_EARG = -2
    integer(c_int), parameter :: CTN_ESHAPE = -3
    integer(c_int), parameter :: CTN_EDTYPE = -4
    integer(c_int), parameter :: CTN_EGONE = -5
    integer(c_int), parameter :: CTN_ESTATE = -6
    integer(c_int), parameter :: CTN_EIO = -7
    integer(c_int), parameter :: CTN_EFORMAT = -8
    integer(c_int), parameter :: CTN_EUNSUPPORTED = -9
    integer(c_int), parameter :: CTN_EENGINE = -10
    integer(c_int), parameter :: CTN_ENOTFOUND = -11
    integer(c_int), parameter :: CTN_EGRAD = -12
    integer(c_int), parameter :: CTN_ENONFINITE = -13
    integer(c_int), parameter :: CTN_EPEER = -14

    ! ctn_mode
    integer(c_int), parameter :: CTN_MODE_DEFAULT = 0
    integer(c_int), parameter :: CTN_MODE_PLANNED = 1
    integer(c_int), parameter :: CTN_MODE_EAGER = 2

    ! ctn_precision
    integer(c_int), parameter :: CTN_PRECISION_F32 = 0
    integer(c_int), parameter :: CTN_PRECISION_BF16 = 1
    integer(c_int), parameter :: CTN_PRECISION_F16 = 2
    integer(c_int), parameter :: CTN_PRECISION_F64 = 3

    ! ctn_var_kind
    integer(c_int), parameter :: CTN_PARAM = 1
    integer(c_int), parameter :: CTN_STATE = 2

    ! context.h
    integer(c_int), parameter :: CTN_LAYOUT_ROW_MAJOR = 1
    integer(c_int), parameter :: CTN_LAYOUT_CHANNELS_LAST = 2
    integer(c_int), parameter :: CTN_LAYOUT_ENGINE = 4
    integer(c_int), parameter :: CTN_LAYOUT_STRIDED = 8

    ! ctn_split
    integer(c_int), parameter :: CTN_TRAIN = 1
    integer(c_int), parameter :: CTN_TEST = 2

    ! dist.h
    integer(c_int), parameter :: CTN_DIST_OVERLAP = 0
    integer(c_int), parameter :: CTN_DIST_AFTER = 1
    integer(c_int), parameter :: CTN_DIST_PER_PARAMETER = 2

    ! dist.h
    integer(c_int), parameter :: CTN_DIST_POLLS = 1
    integer(c_int), parameter :: CTN_DIST_THREAD = 2

    ! dist.h
    integer(c_int), parameter :: CTN_DIST_DEFER = 1
    integer(c_int), parameter :: CTN_DIST_COMPLETE = 2

    ! ctn_crop
    integer(c_int), parameter :: CTN_CROP_CENTER = 0
    integer(c_int), parameter :: CTN_CROP_RANDOM = 1
    integer(c_int), parameter :: CTN_CROP_PAD = 2
    integer(c_int), parameter :: CTN_CROP_WHOLE = 3

    ! ctn_init_kind
    integer(c_int), parameter :: CTN_INIT_CONSTANT = 0
    integer(c_int), parameter :: CTN_INIT_NORMAL = 1
    integer(c_int), parameter :: CTN_INIT_UNIFORM = 2
    integer(c_int), parameter :: CTN_INIT_LECUN_NORMAL = 3
    integer(c_int), parameter :: CTN_INIT_LECUN_UNIFORM = 4
    integer(c_int), parameter :: CTN_INIT_GLOROT_NORMAL = 5
    integer(c_int), parameter :: CTN_INIT_GLOROT_UNIFORM = 6
    integer(c_int), parameter :: CTN_INIT_HE_NORMAL = 7
    integer(c_int), parameter :: CTN_INIT_HE_UNIFORM = 8
    integer(c_int), parameter :: CTN_INIT_ORTHOGONAL = 9
    integer(c_int), parameter :: CTN_INIT_IDENTITY = 10
    integer(c_int), parameter :: CTN_INIT_UPSAMPLE = 11
    integer(c_int), parameter :: CTN_INIT_DOWNSAMPLE = 12

    ! ctn_predicts
    integer(c_int), parameter :: CTN_PREDICTS_OTHER = 0
    integer(c_int), parameter :: CTN_PREDICTS_NEXT = 1
    integer(c_int), parameter :: CTN_PREDICTS_MASKED = 2

    ! ctn_aggregate
    integer(c_int), parameter :: CTN_AGGREGATE_SUM = 0
    integer(c_int), parameter :: CTN_AGGREGATE_MEAN = 1
    integer(c_int), parameter :: CTN_AGGREGATE_MAX = 2

    ! ctn_prec
    integer(c_int), parameter :: CTN_PREC_ANY = 0
    integer(c_int), parameter :: CTN_PREC_LOW = 1
    integer(c_int), parameter :: CTN_PREC_F32 = 2

    ! op.h
    integer(c_int), parameter :: CTN_OP_RANDOM = 1
    integer(c_int), parameter :: CTN_OP_STRIDED = 2
    integer(c_int), parameter :: CTN_OP_TRAIN = 4
    integer(c_int), parameter :: CTN_OP_VIEW = 8
    integer(c_int), parameter :: CTN_OP_ELEMENTWISE = 16
    integer(c_int), parameter :: CTN_OP_ORDERED = 32
    integer(c_int), parameter :: CTN_OP_UPDATE = 64
    integer(c_int), parameter :: CTN_OP_REMOTE = 128

    ! ctn_fft_norm
    integer(c_int), parameter :: CTN_FFT_BACKWARD = 0
    integer(c_int), parameter :: CTN_FFT_ORTHO = 1
    integer(c_int), parameter :: CTN_FFT_FORWARD = 2

    ! ctn_resize_kind
    integer(c_int), parameter :: CTN_RESIZE_NEAREST = 0
    integer(c_int), parameter :: CTN_RESIZE_LINEAR = 1

    ! ctn_reduction
    integer(c_int), parameter :: CTN_MEAN = 0
    integer(c_int), parameter :: CTN_SUM = 1
    integer(c_int), parameter :: CTN_NONE = 2

    ! ctn_pad_mode
    integer(c_int), parameter :: CTN_PAD_ZEROS = 0
    integer(c_int), parameter :: CTN_PAD_REFLECT = 1
    integer(c_int), parameter :: CTN_PAD_REPLICATE = 2
    integer(c_int), parameter :: CTN_PAD_WRAP = 3

    ! ctn_sched_kind
    integer(c_int), parameter :: CTN_SCHED_CONSTANT = 0
    integer(c_int), parameter :: CTN_SCHED_STEP = 1
    integer(c_int), parameter :: CTN_SCHED_EXPONENTIAL = 2
    integer(c_int), parameter :: CTN_SCHED_COSINE = 3
    integer(c_int), parameter :: CTN_SCHED_LINEAR = 4
    integer(c_int), parameter :: CTN_SCHED_POLYNOMIAL = 5
    integer(c_int), parameter :: CTN_SCHED_MULTISTEP = 6
    integer(c_int), parameter :: CTN_SCHED_INVERSE = 7
    integer(c_int), parameter :: CTN_SCHED_ONE_CYCLE = 8
    integer(c_int), parameter :: CTN_SCHED_COSINE_RESTARTS = 9

    ! ctn_dtype
    integer(c_int), parameter :: CTN_F32 = 1
    integer(c_int), parameter :: CTN_F64 = 2
    integer(c_int), parameter :: CTN_BF16 = 3
    integer(c_int), parameter :: CTN_F16 = 4
    integer(c_int), parameter :: CTN_I64 = 5
    integer(c_int), parameter :: CTN_I32 = 6
    integer(c_int), parameter :: CTN_U8 = 7
    integer(c_int), parameter :: CTN_BOOL = 8

    ! ctn_trigger_kind
    integer(c_int), parameter :: CTN_EVERY_EPOCHS = 1
    integer(c_int), parameter :: CTN_EVERY_ITERATIONS = 2
    integer(c_int), parameter :: CTN_EVERY_SECONDS = 3
    integer(c_int), parameter :: CTN_ONCE = 4
    integer(c_int), parameter :: CTN_AT_END = 5
    integer(c_int), parameter :: CTN_WHEN_MAX = 6
    integer(c_int), parameter :: CTN_WHEN_MIN = 7
    integer(c_int), parameter :: CTN_SHARE_OF_TIME = 8
    integer(c_int), parameter :: CTN_AT_EPOCHS = 9
    integer(c_int), parameter :: CTN_AT_ITERATIONS = 10

    ! train.h
    integer(c_int), parameter :: CTN_PRIORITY_EVALUATE = 500
    integer(c_int), parameter :: CTN_PRIORITY_CHANGE = 400
    integer(c_int), parameter :: CTN_PRIORITY_LOG = 300
    integer(c_int), parameter :: CTN_PRIORITY_SHOW = 200
    integer(c_int), parameter :: CTN_PRIORITY_SAVE = 100

    ! ctn_nonfinite_policy
    integer(c_int), parameter :: CTN_NONFINITE_STOP = 0
    integer(c_int), parameter :: CTN_NONFINITE_SKIP = 1
    integer(c_int), parameter :: CTN_NONFINITE_REWIND = 2

    ! ---- handles
    type, bind(C) :: ctn_comm
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_retained
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_dataset
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_sampler
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_loader
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_dist_chain
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_dist_grid
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_generator
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_weights
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_module
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_optim
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_context
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_tensor
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_var
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_tokenizer
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_trainer
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_step
        type(c_ptr) :: p = c_null_ptr
    end type
    type, bind(C) :: ctn_memory
        type(c_ptr) :: p = c_null_ptr
    end type

    ! ---- structs
    type, bind(C) :: ctn_allocator
        type(c_funptr) :: alloc = c_null_funptr
        type(c_funptr) :: release = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
    end type
    type, bind(C) :: ctn_comm_opt
        integer(c_size_t) :: struct_size = 40
        type(c_ptr) :: algorithm = c_null_ptr
        integer(c_int) :: wire = 0
        integer(c_int) :: rows = 0
        integer(c_int64_t) :: segment = 0
        integer(c_int) :: window = 0
    end type
    type, bind(C) :: ctn_comm_stats
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: started = 0
        integer(c_int64_t) :: finished = 0
        integer(c_int64_t) :: sent = 0
        integer(c_int) :: waiting = 0
        integer(c_int64_t) :: messages = 0
        integer(c_int64_t) :: control = 0
    end type
    type, bind(C) :: ctn_context_opt
        integer(c_size_t) :: struct_size = 80
        integer(c_int) :: threads = 0
        integer(c_int64_t) :: seed = 0
        integer(c_int) :: mode = 0
        integer(c_int) :: precision = 0
        integer(c_int) :: slow_precision = 0
        integer(c_int) :: no_fuse = 0
        integer(c_int64_t) :: max_plans = 0
        integer(c_int64_t) :: max_plan_bytes = 0
        type(c_ptr) :: cores = c_null_ptr
        integer(c_int) :: ncores = 0
        integer(c_int64_t) :: spans = 0
    end type
    type, bind(C) :: ctn_context_state
        integer(c_int64_t) :: seed = 0
        integer(c_int64_t) :: step = 0
    end type
    type, bind(C) :: ctn_share
        integer(c_int64_t) :: part = 0
        integer(c_int64_t) :: rows = 0
        integer(c_int64_t) :: first = 0
        integer(c_int64_t) :: every = 0
        integer(c_int64_t) :: total = 0
    end type
    type, bind(C) :: ctn_vars
        integer(c_int) :: n = 0
        type(c_ptr) :: var = c_null_ptr
        type(c_ptr) :: name = c_null_ptr
    end type
    type, bind(C) :: ctn_plan_stats
        integer(c_int64_t) :: hits = 0
        integer(c_int64_t) :: misses = 0
        integer(c_int64_t) :: evictions = 0
        integer(c_int64_t) :: runs = 0
        integer(c_int64_t) :: recorded_ops = 0
        integer(c_int64_t) :: underflow_runs = 0
        integer(c_int64_t) :: plans = 0
        integer(c_int64_t) :: plan_bytes = 0
        integer(c_int64_t) :: arena_bytes = 0
    end type
    type, bind(C) :: ctn_plan_node
        integer(c_size_t) :: struct_size = 128
        integer(c_int) :: index = 0
        type(c_ptr) :: op = c_null_ptr
        type(c_ptr) :: kernel = c_null_ptr
        type(c_ptr) :: at = c_null_ptr
        type(c_ptr) :: slow = c_null_ptr
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        type(c_ptr) :: in = c_null_ptr
        type(c_ptr) :: out = c_null_ptr
        integer(c_int) :: layouts = 0
        integer(c_int) :: reordered = 0
        integer(c_int64_t) :: bytes = 0
        integer(c_int64_t) :: flops = 0
        integer(c_int64_t) :: ns = 0
        integer(c_int64_t) :: begin = 0
        integer(c_int64_t) :: end = 0
        integer(c_int) :: gradient = 0
    end type
    type, bind(C) :: ctn_field
        integer(c_int) :: dtype = 0
        integer(c_int) :: ndim = 0
        integer(c_int64_t) :: shape(8) = 0
        integer(c_int) :: channels_last = 0
    end type
    type, bind(C) :: ctn_sample
        integer(c_int64_t) :: index = 0
        integer(c_int64_t) :: seed = 0
        integer(c_int64_t) :: epoch = 0
        integer(c_int64_t) :: size = 0
    end type
    type, bind(C) :: ctn_dataset_vt
        integer(c_size_t) :: struct_size = 80
        type(c_funptr) :: count = c_null_funptr
        type(c_funptr) :: fields = c_null_funptr
        type(c_funptr) :: field = c_null_funptr
        type(c_funptr) :: get = c_null_funptr
        type(c_funptr) :: free = c_null_funptr
        type(c_funptr) :: name = c_null_funptr
        type(c_funptr) :: class_name = c_null_funptr
        type(c_funptr) :: length = c_null_funptr
        type(c_funptr) :: resizes = c_null_funptr
    end type
    type, bind(C) :: ctn_idx_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: raw = 0
        integer(c_int) :: shaped = 0
    end type
    type, bind(C) :: ctn_cifar_opt
        integer(c_size_t) :: struct_size = 72
        integer(c_int) :: raw = 0
        real(c_double) :: mean(3) = 0
        real(c_double) :: std(3) = 0
        integer(c_int) :: coarse = 0
    end type
    type, bind(C) :: ctn_sampler_state
        integer(c_int64_t) :: seed = 0
        integer(c_int64_t) :: epoch = 0
        integer(c_int64_t) :: position = 0
    end type
    type, bind(C) :: ctn_mix_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: mixup = 0
        real(c_double) :: cutmix = 0
        integer(c_int64_t) :: classes = 0
    end type
    type, bind(C) :: ctn_loader_opt
        integer(c_size_t) :: struct_size = 192
        integer(c_int64_t) :: batch = 0
        integer(c_int) :: threads = 0
        integer(c_int) :: depth = 0
        integer(c_int) :: drop_last = 0
        real(c_double) :: skip = 0
        real(c_double) :: stall_s = 0
        type(c_ptr) :: cores = c_null_ptr
        integer(c_int) :: ncores = 0
        type(c_ptr) :: mix = c_null_ptr
        integer(c_int64_t) :: pad_multiple = 0
        real(c_double) :: pad_value(8) = 0
        integer(c_int64_t) :: total = 0
        integer(c_int64_t) :: block = 0
        integer(c_int) :: join = 0
        integer(c_int) :: join_index = 0
        type(c_ptr) :: sizes = c_null_ptr
        integer(c_int) :: nsizes = 0
        integer(c_int64_t) :: size_every = 0
    end type
    type, bind(C) :: ctn_loader_stats
        integer(c_int64_t) :: batches = 0
        integer(c_int64_t) :: samples = 0
        integer(c_int64_t) :: skipped = 0
        integer(c_int64_t) :: wait_ns = 0
        integer(c_int64_t) :: fill_ns = 0
    end type
    type, bind(C) :: ctn_files_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: keep_f64 = 0
        type(c_ptr) :: offsets = c_null_ptr
        integer(c_int) :: fill = 0
        real(c_double) :: fill_value = 0
    end type
    type, bind(C) :: ctn_csv_opt
        integer(c_size_t) :: struct_size = 88
        type(c_ptr) :: separator = c_null_ptr
        integer(c_int) :: no_header = 0
        integer(c_int) :: ninputs = 0
        integer(c_int) :: ntargets = 0
        type(c_ptr) :: inputs = c_null_ptr
        type(c_ptr) :: targets = c_null_ptr
        integer(c_int) :: keep_f64 = 0
        integer(c_int) :: classes = 0
        integer(c_int) :: categories = 0
        integer(c_int) :: text_target = 0
        integer(c_int) :: fill = 0
        real(c_double) :: fill_value = 0
        type(ctn_dataset) :: like
    end type
    type, bind(C) :: ctn_tokens_opt
        integer(c_size_t) :: struct_size = 32
        integer(c_int64_t) :: length = 0
        integer(c_int64_t) :: stride = 0
        integer(c_int) :: bytes = 0
    end type
    type, bind(C) :: ctn_mask_opt
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: chosen = 0
        real(c_double) :: masked = 0
        real(c_double) :: random = 0
        type(c_ptr) :: mask = c_null_ptr
        type(c_ptr) :: begin = c_null_ptr
        type(c_ptr) :: end = c_null_ptr
    end type
    type, bind(C) :: ctn_dist_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int64_t) :: bucket = 0
        integer(c_int) :: shard = 0
        integer(c_int) :: progress = 0
        integer(c_int) :: when = 0
        integer(c_int) :: defer = 0
        integer(c_int64_t) :: exact = 0
    end type
    type, bind(C) :: ctn_dist_stats
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: exposed_s = 0
        real(c_double) :: hidden_s = 0
        integer(c_int64_t) :: buckets = 0
        integer(c_int64_t) :: state_bytes = 0
        integer(c_int64_t) :: bucket = 0
        integer(c_int) :: progress = 0
    end type
    type, bind(C) :: ctn_dist_halo_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: before(3) = 0
        integer(c_int64_t) :: after(3) = 0
    end type
    type, bind(C) :: ctn_env_entry
        type(c_ptr) :: name = c_null_ptr
        type(c_ptr) :: type = c_null_ptr
        type(c_ptr) :: def = c_null_ptr
        type(c_ptr) :: help = c_null_ptr
        type(c_ptr) :: value = c_null_ptr
        type(c_ptr) :: source = c_null_ptr
    end type
    type, bind(C) :: ctn_generator_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: room = 0
        real(c_double) :: temperature = 0
        integer(c_int64_t) :: top_k = 0
        real(c_double) :: top_p = 0
        integer(c_int64_t) :: seed = 0
        real(c_double) :: repetition_penalty = 0
    end type
    type, bind(C) :: ctn_image_opt
        integer(c_size_t) :: struct_size = 192
        integer(c_int64_t) :: height = 0
        integer(c_int64_t) :: width = 0
        integer(c_int) :: crop = 0
        integer(c_int64_t) :: resize = 0
        real(c_double) :: scale(2) = 0
        real(c_double) :: ratio(2) = 0
        integer(c_int64_t) :: pad = 0
        integer(c_int) :: flip = 0
        real(c_double) :: brightness = 0
        real(c_double) :: contrast = 0
        real(c_double) :: saturation = 0
        real(c_double) :: hue = 0
        real(c_double) :: mean(3) = 0
        real(c_double) :: std(3) = 0
        integer(c_int) :: raw = 0
        integer(c_int) :: channels_last = 0
        integer(c_int) :: gray = 0
        integer(c_int) :: randaugment = 0
        real(c_double) :: magnitude = 0
    end type
    type, bind(C) :: ctn_segmentation_opt
        integer(c_size_t) :: struct_size = 24
        type(c_ptr) :: image = c_null_ptr
        integer(c_int64_t) :: ignore = 0
    end type
    type, bind(C) :: ctn_shards_opt
        integer(c_size_t) :: struct_size = 48
        type(c_ptr) :: image = c_null_ptr
        type(c_ptr) :: index_dir = c_null_ptr
        type(c_ptr) :: stage = c_null_ptr
        type(c_ptr) :: index = c_null_ptr
        integer(c_size_t) :: index_bytes = 0
    end type
    type, bind(C) :: ctn_pack_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int64_t) :: shard_bytes = 0
        integer(c_int64_t) :: seed = 0
        integer(c_int) :: keep_order = 0
        type(c_funptr) :: progress = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
    end type
    type, bind(C) :: ctn_build_entry
        type(c_ptr) :: name = c_null_ptr
        type(c_ptr) :: value = c_null_ptr
        type(c_ptr) :: help = c_null_ptr
    end type
    type, bind(C) :: ctn_machine
        integer(c_int) :: cpus = 0
        integer(c_int) :: cores = 0
        integer(c_int) :: numa = 0
        integer(c_int) :: threads = 0
        type(c_ptr) :: threads_source = c_null_ptr
    end type
    type, bind(C) :: ctn_weights_save_opt
        integer(c_size_t) :: struct_size = 24
        type(c_ptr) :: only = c_null_ptr
        integer(c_int) :: no_sync = 0
    end type
    type, bind(C) :: ctn_weights_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int) :: partial = 0
        type(c_ptr) :: rename = c_null_ptr
        type(c_funptr) :: map = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
        integer(c_int) :: new_head = 0
        type(c_funptr) :: fresh = c_null_funptr
    end type
    type, bind(C) :: ctn_weights_match
        type(c_ptr) :: name = c_null_ptr
        type(c_ptr) :: array = c_null_ptr
        type(c_ptr) :: problem = c_null_ptr
        type(c_ptr) :: map = c_null_ptr
    end type
    type, bind(C) :: ctn_weights_array
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: dtype = 0
        integer(c_int) :: ndim = 0
        integer(c_int64_t) :: shape(8) = 0
        integer(c_size_t) :: bytes = 0
    end type
    type, bind(C) :: ctn_weights_item
        type(ctn_weights) :: from
        integer(c_int64_t) :: array = 0
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: dtype = 0
    end type
    type, bind(C) :: ctn_state_part
        type(c_ptr) :: prefix = c_null_ptr
        type(c_funptr) :: visit = c_null_funptr
        type(c_ptr) :: object = c_null_ptr
    end type
    type, bind(C) :: ctn_model
        integer(c_int32_t) :: abi = 0
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: name = c_null_ptr
        type(c_funptr) :: make = c_null_funptr
        type(c_funptr) :: loss = c_null_funptr
    end type
    type, bind(C) :: ctn_init
        integer(c_size_t) :: struct_size = 80
        integer(c_int) :: kind = 0
        real(c_double) :: value = 0
        real(c_double) :: mean = 0
        real(c_double) :: std = 0
        real(c_double) :: low = 0
        real(c_double) :: high = 0
        real(c_double) :: gain = 0
        integer(c_int64_t) :: fan_in = 0
        integer(c_int64_t) :: fan_out = 0
    end type
    type, bind(C) :: ctn_tensors
        integer(c_int) :: n = 0
        type(ctn_tensor) :: t(8)
    end type
    type, bind(C) :: ctn_linear_opt
        integer(c_size_t) :: struct_size = 32
        integer(c_int) :: no_bias = 0
        type(c_ptr) :: weight = c_null_ptr
        type(c_ptr) :: bias = c_null_ptr
    end type
    type, bind(C) :: ctn_conv_module_opt
        integer(c_size_t) :: struct_size = 168
        integer(c_int64_t) :: stride(3) = 0
        integer(c_int64_t) :: pad(3) = 0
        integer(c_int64_t) :: pad_end(3) = 0
        integer(c_int64_t) :: dilation(3) = 0
        integer(c_int64_t) :: groups = 0
        integer(c_int64_t) :: out_pad(3) = 0
        integer(c_int) :: no_bias = 0
        type(c_ptr) :: weight = c_null_ptr
        type(c_ptr) :: bias = c_null_ptr
        integer(c_int) :: pad_mode = 0
    end type
    type, bind(C) :: ctn_spectral_conv_opt
        integer(c_size_t) :: struct_size = 16
        type(c_ptr) :: weight = c_null_ptr
    end type
    type, bind(C) :: ctn_batch_norm_module_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
        integer(c_int) :: no_affine = 0
        type(c_ptr) :: weight = c_null_ptr
        type(c_ptr) :: bias = c_null_ptr
    end type
    type, bind(C) :: ctn_batch_renorm_module_opt
        integer(c_size_t) :: struct_size = 64
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
        real(c_double) :: rmax = 0
        real(c_double) :: dmax = 0
        integer(c_int) :: no_affine = 0
        type(c_ptr) :: weight = c_null_ptr
        type(c_ptr) :: bias = c_null_ptr
    end type
    type, bind(C) :: ctn_norm_opt
        integer(c_size_t) :: struct_size = 24
        real(c_double) :: eps = 0
        integer(c_int) :: no_affine = 0
        integer(c_int) :: no_bias = 0
    end type
    type, bind(C) :: ctn_rnn_module_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int) :: layers = 0
        integer(c_int) :: bidirectional = 0
        integer(c_int) :: batch_first = 0
        integer(c_int) :: no_bias = 0
        real(c_double) :: dropout = 0
        integer(c_int64_t) :: projection = 0
        integer(c_int) :: relu = 0
        integer(c_int) :: composed = 0
    end type
    type, bind(C) :: ctn_graph_conv_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: no_bias = 0
    end type
    type, bind(C) :: ctn_graph_attention_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int64_t) :: heads = 0
        integer(c_int) :: mean = 0
        real(c_double) :: slope = 0
        real(c_double) :: dropout = 0
        integer(c_int) :: no_bias = 0
    end type
    type, bind(C) :: ctn_message_passing_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: aggregate = 0
        integer(c_int) :: residual = 0
    end type
    type, bind(C) :: ctn_inception_opt
        integer(c_size_t) :: struct_size = 64
        integer(c_int64_t) :: out1 = 0
        integer(c_int64_t) :: reduce3 = 0
        integer(c_int64_t) :: out3 = 0
        integer(c_int64_t) :: reduce5 = 0
        integer(c_int64_t) :: out5 = 0
        integer(c_int64_t) :: pool = 0
        integer(c_int) :: batch_norm = 0
    end type
    type, bind(C) :: ctn_inception_bn_opt
        integer(c_size_t) :: struct_size = 72
        integer(c_int64_t) :: out1 = 0
        integer(c_int64_t) :: reduce3 = 0
        integer(c_int64_t) :: out3 = 0
        integer(c_int64_t) :: reduce33 = 0
        integer(c_int64_t) :: out33 = 0
        integer(c_int64_t) :: pool = 0
        integer(c_int64_t) :: stride = 0
        integer(c_int) :: average = 0
    end type
    type, bind(C) :: ctn_lora_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int64_t) :: rank = 0
        real(c_double) :: alpha = 0
        type(c_ptr) :: only = c_null_ptr
        integer(c_int) :: base = 0
    end type
    type, bind(C) :: ctn_spectral_norm_opt
        integer(c_size_t) :: struct_size = 24
        integer(c_int) :: dim = 0
        integer(c_int) :: iterations = 0
        real(c_double) :: eps = 0
    end type
    type, bind(C) :: ctn_onnx_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: frozen = 0
    end type
    type, bind(C) :: ctn_onnx_port
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: dtype = 0
        integer(c_int) :: ndim = 0
        integer(c_int64_t) :: dim(8) = 0
    end type
    type, bind(C) :: ctn_onnx_export_opt
        integer(c_size_t) :: struct_size = 72
        integer(c_int) :: opset = 0
        integer(c_int) :: fold_batch_norm = 0
        integer(c_int) :: external = 0
        integer(c_int64_t) :: batch = 0
        integer(c_int64_t) :: any_batch = 0
        integer(c_int64_t) :: any_length = 0
        type(c_ptr) :: in_names = c_null_ptr
        type(c_ptr) :: out_names = c_null_ptr
        type(ctn_module) :: module
    end type
    type, bind(C) :: ctn_scalar
        real(c_double) :: value = 0
        integer(c_int32_t) :: slot = 0
    end type
    type, bind(C) :: ctn_infer_args
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        integer(c_int) :: nattr = 0
        type(c_ptr) :: in = c_null_ptr
        type(c_ptr) :: attr = c_null_ptr
        type(c_ptr) :: out = c_null_ptr
    end type
    type, bind(C) :: ctn_grad_args
        type(c_ptr) :: at = c_null_ptr
        type(ctn_context) :: ctx
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        integer(c_int) :: nattr = 0
        integer(c_int) :: nscalar = 0
        type(c_ptr) :: in = c_null_ptr
        type(c_ptr) :: out = c_null_ptr
        type(c_ptr) :: gout = c_null_ptr
        type(c_ptr) :: gin = c_null_ptr
        type(c_ptr) :: need = c_null_ptr
        type(c_ptr) :: attr = c_null_ptr
        type(c_ptr) :: scalar = c_null_ptr
    end type
    type, bind(C) :: ctn_run_args
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        integer(c_int) :: nattr = 0
        integer(c_int) :: nscalar = 0
        type(c_ptr) :: in = c_null_ptr
        type(c_ptr) :: out = c_null_ptr
        type(c_ptr) :: din = c_null_ptr
        type(c_ptr) :: dout = c_null_ptr
        type(c_ptr) :: attr = c_null_ptr
        type(c_ptr) :: scalar = c_null_ptr
        integer(c_int64_t) :: ordinal = 0
        type(c_ptr) :: env = c_null_ptr
        type(c_ptr) :: priv = c_null_ptr
        type(c_ptr) :: scratch = c_null_ptr
    end type
    type, bind(C) :: ctn_prepare_args
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        integer(c_int) :: nattr = 0
        integer(c_int) :: nscalar = 0
        type(c_ptr) :: din = c_null_ptr
        type(c_ptr) :: dout = c_null_ptr
        type(c_ptr) :: attr = c_null_ptr
        integer(c_int) :: threads = 0
        type(c_ptr) :: engine = c_null_ptr
        integer(c_size_t) :: scratch = 0
        integer(c_int64_t) :: flops = 0
        type(c_ptr) :: kernel = c_null_ptr
        type(c_funptr) :: run = c_null_funptr
        type(c_ptr) :: priv = c_null_ptr
        type(c_funptr) :: priv_free = c_null_funptr
        integer(c_size_t) :: priv_bytes = 0
    end type
    type, bind(C) :: ctn_op
        integer(c_size_t) :: struct_size = 120
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: nin = 0
        integer(c_int) :: nout = 0
        integer(c_int32_t) :: flags = 0
        integer(c_int) :: order = 0
        integer(c_int) :: prec = 0
        integer(c_int32_t) :: grad_in = 0
        integer(c_int32_t) :: grad_out = 0
        integer(c_int32_t) :: inplace = 0
        integer(c_int32_t) :: spatial_in = 0
        integer(c_int32_t) :: spatial_out = 0
        integer(c_int32_t) :: low_in = 0
        integer(c_int32_t) :: low_out = 0
        type(c_ptr) :: attr_names = c_null_ptr
        type(c_funptr) :: infer = c_null_funptr
        type(c_funptr) :: grad = c_null_funptr
        type(c_funptr) :: prepare = c_null_funptr
        type(c_funptr) :: run = c_null_funptr
        integer(c_int64_t) :: uid = 0
        type(c_ptr) :: tiles = c_null_ptr
    end type
    type, bind(C) :: ctn_op_args
        integer(c_int) :: nattr = 0
        integer(c_int) :: nscalar = 0
        type(c_ptr) :: attr = c_null_ptr
        type(c_ptr) :: scalar = c_null_ptr
    end type
    type, bind(C) :: ctn_gradcheck_input
        integer(c_int) :: ndim = 0
        type(c_ptr) :: dims = c_null_ptr
        type(c_ptr) :: values = c_null_ptr
    end type
    type, bind(C) :: ctn_softmax_cross_entropy_opt
        integer(c_size_t) :: struct_size = 48
        type(ctn_tensor) :: weights
        integer(c_int) :: reduction = 0
        type(c_ptr) :: ignore = c_null_ptr
        real(c_double) :: smoothing = 0
        type(ctn_tensor) :: bias
    end type
    type, bind(C) :: ctn_conv_opt
        integer(c_size_t) :: struct_size = 144
        integer(c_int64_t) :: stride(3) = 0
        integer(c_int64_t) :: pad(3) = 0
        integer(c_int64_t) :: pad_end(3) = 0
        integer(c_int64_t) :: dilation(3) = 0
        integer(c_int64_t) :: groups = 0
        integer(c_int64_t) :: out_pad(3) = 0
        integer(c_int) :: pad_mode = 0
    end type
    type, bind(C) :: ctn_pool_opt
        integer(c_size_t) :: struct_size = 88
        integer(c_int64_t) :: kernel(3) = 0
        integer(c_int64_t) :: stride(3) = 0
        integer(c_int64_t) :: pad(3) = 0
        integer(c_int) :: ceil = 0
        integer(c_int) :: exclude_pad = 0
    end type
    type, bind(C) :: ctn_roi_opt
        integer(c_size_t) :: struct_size = 64
        integer(c_int64_t) :: size(2) = 0
        real(c_double) :: scale = 0
        integer(c_int) :: max = 0
        integer(c_int64_t) :: sampling(2) = 0
        integer(c_int) :: aligned = 0
        integer(c_int) :: inclusive = 0
    end type
    type, bind(C) :: ctn_batch_norm_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
        integer(c_int) :: frozen = 0
    end type
    type, bind(C) :: ctn_decorrelated_batch_norm_opt
        integer(c_size_t) :: struct_size = 32
        integer(c_int64_t) :: groups = 0
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
    end type
    type, bind(C) :: ctn_batch_renorm_opt
        integer(c_size_t) :: struct_size = 40
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
        real(c_double) :: rmax = 0
        real(c_double) :: dmax = 0
    end type
    type, bind(C) :: ctn_clustering_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: pull = 0
        real(c_double) :: push = 0
        integer(c_int) :: norm = 0
    end type
    type, bind(C) :: ctn_attention_opt
        integer(c_size_t) :: struct_size = 64
        real(c_double) :: scale = 0
        integer(c_int) :: causal = 0
        integer(c_int64_t) :: window = 0
        real(c_double) :: dropout = 0
        type(ctn_tensor) :: lengths
        type(ctn_tensor) :: first
        integer(c_int) :: composed = 0
    end type
    type, bind(C) :: ctn_rotary_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: base = 0
        real(c_double) :: first = 0
        integer(c_int64_t) :: dims = 0
        integer(c_int) :: interleaved = 0
        type(ctn_tensor) :: positions
    end type
    type, bind(C) :: ctn_rnn_weights
        type(ctn_tensor) :: w_ih
        type(ctn_tensor) :: w_hh
        type(ctn_tensor) :: b_ih
        type(ctn_tensor) :: b_hh
        type(ctn_tensor) :: w_hr
    end type
    type, bind(C) :: ctn_rnn_opt
        integer(c_size_t) :: struct_size = 48
        type(ctn_tensor) :: h0
        type(ctn_tensor) :: c0
        type(ctn_tensor) :: lengths
        integer(c_int) :: reverse = 0
        integer(c_int) :: relu = 0
        integer(c_int) :: composed = 0
    end type
    type, bind(C) :: ctn_ctc_opt
        integer(c_size_t) :: struct_size = 48
        type(ctn_tensor) :: input_lengths
        type(ctn_tensor) :: label_lengths
        integer(c_int64_t) :: blank = 0
        integer(c_int) :: reduction = 0
        integer(c_int) :: per_label = 0
        integer(c_int) :: zero_infinity = 0
        integer(c_int) :: composed = 0
    end type
    type, bind(C) :: ctn_crf_opt
        integer(c_size_t) :: struct_size = 24
        type(ctn_tensor) :: lengths
        integer(c_int) :: reduction = 0
    end type
    type, bind(C) :: ctn_sgd_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: lr = 0
        real(c_double) :: momentum = 0
        real(c_double) :: dampening = 0
        real(c_double) :: decay = 0
        integer(c_int) :: nesterov = 0
    end type
    type, bind(C) :: ctn_adam_opt
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
        integer(c_int) :: amsgrad = 0
    end type
    type, bind(C) :: ctn_rmsprop_opt
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: lr = 0
        real(c_double) :: alpha = 0
        real(c_double) :: eps = 0
        real(c_double) :: momentum = 0
        real(c_double) :: decay = 0
        integer(c_int) :: centered = 0
    end type
    type, bind(C) :: ctn_adagrad_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: lr = 0
        real(c_double) :: lr_decay = 0
        real(c_double) :: eps = 0
        real(c_double) :: initial = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_adadelta_opt
        integer(c_size_t) :: struct_size = 40
        real(c_double) :: lr = 0
        real(c_double) :: rho = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_adamax_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_nadam_opt
        integer(c_size_t) :: struct_size = 64
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: momentum_decay = 0
        real(c_double) :: decay = 0
        integer(c_int) :: decoupled = 0
    end type
    type, bind(C) :: ctn_radam_opt
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
        integer(c_int) :: decoupled = 0
    end type
    type, bind(C) :: ctn_lion_opt
        integer(c_size_t) :: struct_size = 40
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_lamb_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: lr = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_lars_opt
        integer(c_size_t) :: struct_size = 48
        real(c_double) :: lr = 0
        real(c_double) :: momentum = 0
        real(c_double) :: trust = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_adabound_opt
        integer(c_size_t) :: struct_size = 72
        real(c_double) :: lr = 0
        real(c_double) :: final_lr = 0
        real(c_double) :: gamma = 0
        real(c_double) :: beta1 = 0
        real(c_double) :: beta2 = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
        integer(c_int) :: amsbound = 0
    end type
    type, bind(C) :: ctn_smorms3_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: lr = 0
        real(c_double) :: eps = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_msvag_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: lr = 0
        real(c_double) :: beta = 0
        real(c_double) :: decay = 0
    end type
    type, bind(C) :: ctn_adafactor_opt
        integer(c_size_t) :: struct_size = 64
        real(c_double) :: lr = 0
        real(c_double) :: beta2_decay = 0
        real(c_double) :: eps1 = 0
        real(c_double) :: eps2 = 0
        real(c_double) :: clip = 0
        real(c_double) :: decay = 0
        integer(c_int) :: fixed_step = 0
    end type
    type, bind(C) :: ctn_lbfgs_opt
        integer(c_size_t) :: struct_size = 56
        real(c_double) :: lr = 0
        integer(c_int) :: iterations = 0
        integer(c_int) :: evaluations = 0
        integer(c_int) :: history = 0
        real(c_double) :: tol_grad = 0
        real(c_double) :: tol_change = 0
        integer(c_int) :: no_line_search = 0
    end type
    type, bind(C) :: ctn_group_opt
        integer(c_size_t) :: struct_size = 32
        real(c_double) :: lr_scale = 0
        type(c_ptr) :: decay = c_null_ptr
        integer(c_int) :: freeze = 0
    end type
    type, bind(C) :: ctn_loss_scale_opt
        integer(c_size_t) :: struct_size = 64
        real(c_double) :: scale = 0
        integer(c_int) :: dynamic = 0
        real(c_double) :: growth = 0
        real(c_double) :: backoff = 0
        integer(c_int64_t) :: interval = 0
        real(c_double) :: max = 0
        real(c_double) :: min = 0
    end type
    type, bind(C) :: ctn_sched_opt
        integer(c_size_t) :: struct_size = 240
        integer(c_int) :: kind = 0
        integer(c_int64_t) :: warmup = 0
        integer(c_int64_t) :: steps = 0
        integer(c_int64_t) :: every = 0
        real(c_double) :: gamma = 0
        real(c_double) :: end = 0
        real(c_double) :: power = 0
        integer(c_int64_t) :: at(16) = 0
        real(c_double) :: start = 0
        real(c_double) :: rise = 0
        integer(c_int64_t) :: swa_start = 0
        integer(c_int64_t) :: swa_steps = 0
        real(c_double) :: swa_end = 0
        integer(c_int) :: swa_linear = 0
    end type
    type, bind(C) :: ctn_desc
        integer(c_int) :: dtype = 0
        integer(c_int32_t) :: ndim = 0
        integer(c_int32_t) :: layout = 0
        integer(c_int64_t) :: dim(8) = 0
        integer(c_int64_t) :: stride(8) = 0
    end type
    type, bind(C) :: ctn_tokenizer_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: ignore_special = 0
        integer(c_int) :: keep_case = 0
    end type
    type, bind(C) :: ctn_decode_state
        character(kind=c_char) :: held(4) = c_null_char
        integer(c_int) :: n = 0
        integer(c_int) :: started = 0
    end type
    type, bind(C) :: ctn_chat_opt
        integer(c_size_t) :: struct_size = 16
        integer(c_int) :: no_prompt = 0
    end type
    type, bind(C) :: ctn_tokens_pack_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int) :: threads = 0
        type(c_ptr) :: end = c_null_ptr
        integer(c_int64_t) :: piece = 0
        type(c_funptr) :: progress = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
    end type
    type, bind(C) :: ctn_trainer_opt
        integer(c_size_t) :: struct_size = 56
        type(ctn_module) :: net
        integer(c_int64_t) :: epochs = 0
        integer(c_int64_t) :: iterations = 0
        real(c_double) :: seconds = 0
        integer(c_int64_t) :: accumulate = 0
        type(c_ptr) :: out = c_null_ptr
    end type
    type, bind(C) :: ctn_progress
        integer(c_int64_t) :: iteration = 0
        integer(c_int64_t) :: epoch = 0
        real(c_double) :: part = 0
        real(c_double) :: total = 0
        integer(c_int64_t) :: samples = 0
        real(c_double) :: seconds = 0
        real(c_double) :: compute_s = 0
        real(c_double) :: input_s = 0
        real(c_double) :: other_s = 0
        integer(c_int) :: epoch_ended = 0
        integer(c_int) :: complete = 0
        integer(c_int64_t) :: saved = 0
        integer(c_int64_t) :: saves = 0
        real(c_double) :: pause_s = 0
        real(c_double) :: pauses_s = 0
        real(c_double) :: slowed_s = 0
    end type
    type, bind(C) :: ctn_trigger
        integer(c_int) :: kind = 0
        real(c_double) :: n = 0
        type(c_ptr) :: key = c_null_ptr
        real(c_double) :: at(16) = 0
        real(c_double) :: apart = 0
    end type
    type, bind(C) :: ctn_show_opt
        integer(c_size_t) :: struct_size = 32
        type(c_funptr) :: write = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
        integer(c_int) :: terminal = 0
        integer(c_int) :: columns = 0
    end type
    type, bind(C) :: ctn_patience_opt
        integer(c_size_t) :: struct_size = 56
        type(c_ptr) :: key = c_null_ptr
        integer(c_int) :: larger = 0
        integer(c_int64_t) :: patience = 0
        real(c_double) :: factor = 0
        real(c_double) :: min = 0
        real(c_double) :: difference = 0
    end type
    type, bind(C) :: ctn_nonfinite_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: policy = 0
        integer(c_int64_t) :: max_skips = 0
        integer(c_int64_t) :: max_rewinds = 0
        real(c_double) :: factor = 0
    end type
    type, bind(C) :: ctn_spike_opt
        integer(c_size_t) :: struct_size = 24
        real(c_double) :: deviations = 0
        integer(c_int64_t) :: window = 0
    end type
    type, bind(C) :: ctn_state_info
        integer(c_size_t) :: struct_size = 88
        integer(c_int64_t) :: number = 0
        type(c_ptr) :: path = c_null_ptr
        integer(c_int64_t) :: iteration = 0
        integer(c_int64_t) :: epoch = 0
        integer(c_int64_t) :: samples = 0
        integer(c_int64_t) :: ranks = 0
        integer(c_int64_t) :: bytes = 0
        integer(c_int64_t) :: files = 0
        integer(c_int64_t) :: arrays = 0
        type(c_ptr) :: problem = c_null_ptr
    end type
    type, bind(C) :: ctn_state_array
        integer(c_size_t) :: struct_size = 96
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: dtype = 0
        integer(c_int) :: ndim = 0
        integer(c_int64_t) :: shape(8) = 0
        type(c_ptr) :: hash = c_null_ptr
    end type
    type, bind(C) :: ctn_tune_file
        type(c_ptr) :: path = c_null_ptr
        type(c_ptr) :: machine = c_null_ptr
        integer(c_int64_t) :: entries = 0
        integer(c_int64_t) :: bytes = 0
        integer(c_int64_t) :: modified = 0
    end type
    type, bind(C) :: ctn_zoo_opt
        integer(c_size_t) :: struct_size = 24
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
    end type
    type, bind(C) :: ctn_mlp_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: n = 0
        type(c_ptr) :: size = c_null_ptr
        type(c_funptr) :: activation = c_null_funptr
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_lenet5_opt
        integer(c_size_t) :: struct_size = 24
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
    end type
    type, bind(C) :: ctn_resnet_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: depth = 0
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: width = 0
    end type
    type, bind(C) :: ctn_resnet_cifar_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: depth = 0
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: width = 0
    end type
    type, bind(C) :: ctn_mobilenet_v2_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        real(c_double) :: width = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_vgg_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int) :: depth = 0
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_googlenet_opt
        integer(c_size_t) :: struct_size = 40
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int) :: batch_norm = 0
        integer(c_int) :: no_aux = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_unet_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int) :: spatial = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: out_channels = 0
        integer(c_int64_t) :: width = 0
        integer(c_int) :: depth = 0
    end type
    type, bind(C) :: ctn_fno_opt
        integer(c_size_t) :: struct_size = 96
        integer(c_int) :: spatial = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: out_channels = 0
        integer(c_int64_t) :: width = 0
        integer(c_int64_t) :: modes(3) = 0
        integer(c_int) :: layers = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int64_t) :: pad = 0
        integer(c_int) :: no_grid = 0
    end type
    type, bind(C) :: ctn_gpt_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: vocabulary = 0
        integer(c_int64_t) :: block = 0
        integer(c_int64_t) :: width = 0
        integer(c_int) :: layers = 0
        integer(c_int) :: heads = 0
        real(c_double) :: dropout = 0
        integer(c_int) :: untied = 0
    end type
    type, bind(C) :: ctn_llama_opt
        integer(c_size_t) :: struct_size = 96
        integer(c_int64_t) :: vocabulary = 0
        integer(c_int64_t) :: block = 0
        integer(c_int64_t) :: width = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: layers = 0
        integer(c_int) :: heads = 0
        integer(c_int) :: kv_heads = 0
        integer(c_int64_t) :: head_width = 0
        real(c_double) :: rotary_base = 0
        real(c_double) :: eps = 0
        integer(c_int64_t) :: window = 0
        integer(c_int) :: untied = 0
        integer(c_int) :: qkv_bias = 0
    end type
    type, bind(C) :: ctn_bert_opt
        integer(c_size_t) :: struct_size = 72
        integer(c_int64_t) :: vocabulary = 0
        integer(c_int64_t) :: block = 0
        integer(c_int64_t) :: types = 0
        integer(c_int64_t) :: width = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: layers = 0
        integer(c_int) :: heads = 0
        real(c_double) :: eps = 0
        integer(c_int64_t) :: classes = 0
    end type
    type, bind(C) :: ctn_vit_opt
        integer(c_size_t) :: struct_size = 72
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: image = 0
        integer(c_int64_t) :: patch = 0
        integer(c_int64_t) :: width = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: layers = 0
        integer(c_int) :: heads = 0
        real(c_double) :: eps = 0
    end type
    type, bind(C) :: ctn_seq2seq_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: vocabulary = 0
        integer(c_int64_t) :: target_vocabulary = 0
        integer(c_int64_t) :: width = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: layers = 0
        integer(c_int) :: bidirectional = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_gcn_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: layers = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_gat_opt
        integer(c_size_t) :: struct_size = 56
        integer(c_int64_t) :: in_channels = 0
        integer(c_int64_t) :: classes = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int64_t) :: heads = 0
        integer(c_int) :: layers = 0
        real(c_double) :: dropout = 0
    end type
    type, bind(C) :: ctn_meshgraphnet_opt
        integer(c_size_t) :: struct_size = 48
        integer(c_int64_t) :: node_in = 0
        integer(c_int64_t) :: edge_in = 0
        integer(c_int64_t) :: out = 0
        integer(c_int64_t) :: hidden = 0
        integer(c_int) :: steps = 0
        integer(c_int) :: mlp_layers = 0
    end type
    type, bind(C) :: ctn_batch
        integer(c_int64_t) :: n = 0
        integer(c_int) :: fields = 0
        type(c_ptr) :: data(8) = c_null_ptr
        type(ctn_field) :: field(8)
    end type
    type, bind(C) :: ctn_model_opt
        integer(c_size_t) :: struct_size = 184
        type(ctn_field) :: input
        type(ctn_field) :: target
        integer(c_int64_t) :: classes = 0
        type(c_ptr) :: args = c_null_ptr
    end type
    type, bind(C) :: ctn_run_env
        integer(c_int64_t) :: seed = 0
        integer(c_int64_t) :: step = 0
        integer(c_int) :: threads = 0
        type(ctn_share) :: share
    end type
    type, bind(C) :: ctn_extension
        integer(c_size_t) :: struct_size = 240
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: priority = 0
        type(ctn_trigger) :: trigger
        type(c_funptr) :: start = c_null_funptr
        type(c_funptr) :: call = c_null_funptr
        type(c_funptr) :: finish = c_null_funptr
        type(c_funptr) :: visit = c_null_funptr
        type(c_funptr) :: release = c_null_funptr
        type(c_ptr) :: self = c_null_ptr
        integer(c_int) :: rank0_only = 0
    end type

    ! ---- callbacks
    abstract interface
        function ctn_state_fn(user, name, dtype, ndim, dims, data) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: name
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            type(c_ptr), value :: dims
            type(c_ptr), value :: data
            integer(c_int) :: res
        end function
        function ctn_plan_fn(user, node) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: node
            integer(c_int) :: res
        end function
        function ctn_sampler_fn(user, at) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: at
            integer(c_int64_t) :: res
        end function
        function ctn_transform_fn(user, s, src, dst) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: s
            type(c_ptr), value :: src
            type(c_ptr), value :: dst
            integer(c_int) :: res
        end function
        function ctn_weights_match_fn(user, match) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: match
            integer(c_int) :: res
        end function
        subroutine ctn_log_fn(user, message) bind(C)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: message
        end subroutine
        function ctn_forward_fn(self, m, x) bind(C) result(res)
            import
            type(c_ptr), value :: self
            type(ctn_module), value :: m
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_forward_multi_fn(self, m, x) bind(C) result(res)
            import
            type(c_ptr), value :: self
            type(ctn_module), value :: m
            type(ctn_tensors), value :: x
            type(ctn_tensors) :: res
        end function
        function ctn_module_fn(user, name, m) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: name
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_copy_fn(self, m, copy) bind(C) result(res)
            import
            type(c_ptr), value :: self
            type(ctn_module), value :: m
            type(c_ptr), value :: copy
            integer(c_int) :: res
        end function
        function ctn_gradcheck_fn(self, ctx, x) bind(C) result(res)
            import
            type(c_ptr), value :: self
            type(ctn_context), value :: ctx
            type(c_ptr), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_closure_fn(user, ctx) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(ctn_context), value :: ctx
            type(ctn_tensor) :: res
        end function
        function ctn_loss_fn(self, s) bind(C) result(res)
            import
            type(c_ptr), value :: self
            type(ctn_step), value :: s
            type(ctn_tensor) :: res
        end function
        function ctn_value_fn(user, name, value) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: name
            real(c_double), value :: value
            integer(c_int) :: res
        end function
        function ctn_state_info_fn(user, info) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: info
            integer(c_int) :: res
        end function
        function ctn_text_fn(user, text) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: text
            integer(c_int) :: res
        end function
        function ctn_state_array_fn(user, array) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: array
            integer(c_int) :: res
        end function
        function ctn_tune_fn(user, file, key, value) bind(C) result(res)
            import
            type(c_ptr), value :: user
            type(c_ptr), value :: file
            type(c_ptr), value :: key
            type(c_ptr), value :: value
            integer(c_int) :: res
        end function
    end interface

    ! ---- base.h
    interface
        function ctn_status_text(st) bind(C) result(res)
            import
            integer(c_int), value :: st
            type(c_ptr) :: res
        end function
        function ctn_error_message() bind(C) result(res)
            import
            type(c_ptr) :: res
        end function
        function ctn_error_status() bind(C) result(res)
            import
            integer(c_int) :: res
        end function
        subroutine ctn_error_clear() bind(C)
            import
        end subroutine
        ! ctn_fail takes any number of arguments.
        function ctn_error_trace(st, file, line, func) bind(C) result(res)
            import
            integer(c_int), value :: st
            character(kind=c_char), intent(in) :: file(*)
            integer(c_int), value :: line
            character(kind=c_char), intent(in) :: func(*)
            integer(c_int) :: res
        end function
        function ctn_version() bind(C) result(res)
            import
            integer(c_int) :: res
        end function
        function ctn_version_text() bind(C) result(res)
            import
            type(c_ptr) :: res
        end function
        function ctn_set_allocator(a) bind(C) result(res)
            import
            type(ctn_allocator), intent(in), optional :: a
            integer(c_int) :: res
        end function
        function ctn_allocations() bind(C) result(res)
            import
            integer(c_int64_t) :: res
        end function
    end interface

    ! ---- comm.h
    interface
        function ctn_mpi_init(argc, argv) bind(C) result(res)
            import
            type(c_ptr), value :: argc
            type(c_ptr), value :: argv
            integer(c_int) :: res
        end function
        function ctn_mpi_finalize() bind(C) result(res)
            import
            integer(c_int) :: res
        end function
        function ctn_comm_open(out, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_comm_loopback(out, n, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(inout) :: out(*)
            integer(c_int), value :: n
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_comm_adopt(out, abi, handle, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            character(kind=c_char), intent(in) :: abi(*)
            type(c_ptr), value :: handle
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_comm_adopt_fortran(out, handle, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            integer(c_int), value :: handle
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_comm_free(c) bind(C)
            import
            type(ctn_comm), value :: c
        end subroutine
        function ctn_comm_rank(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_size(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_nodes(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_node(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_local_rank(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_local_size(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_transport(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(c_ptr) :: res
        end function
        function ctn_comm_algorithm(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(c_ptr) :: res
        end function
        function ctn_comm_algorithm_name(i) bind(C) result(res)
            import
            integer(c_int), value :: i
            type(c_ptr) :: res
        end function
        function ctn_comm_set_algorithm(c, name) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: res
        end function
        function ctn_comm_allreduce(c, buf, count, type) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(inout) :: buf(*)
            integer(c_int64_t), value :: count
            integer(c_int), value :: type
            integer(c_int) :: res
        end function
        function ctn_comm_broadcast(c, buf, bytes, root) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(inout) :: buf(*)
            integer(c_size_t), value :: bytes
            integer(c_int), value :: root
            integer(c_int) :: res
        end function
        function ctn_comm_allgather(c, mine, bytes, all) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(in) :: mine(*)
            integer(c_size_t), value :: bytes
            type(*), intent(inout) :: all(*)
            integer(c_int) :: res
        end function
        function ctn_comm_gather(c, mine, bytes, all, root) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(in) :: mine(*)
            integer(c_size_t), value :: bytes
            type(*), intent(inout), optional :: all(*)
            integer(c_int), value :: root
            integer(c_int) :: res
        end function
        function ctn_comm_scatter(c, all, bytes, mine, root) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(in), optional :: all(*)
            integer(c_size_t), value :: bytes
            type(*), intent(inout) :: mine(*)
            integer(c_int), value :: root
            integer(c_int) :: res
        end function
        function ctn_comm_send_bytes(c, buf, bytes, to) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(in) :: buf(*)
            integer(c_size_t), value :: bytes
            integer(c_int), value :: to
            integer(c_int) :: res
        end function
        function ctn_comm_recv_size(c, from, bytes) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int), value :: from
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: res
        end function
        function ctn_comm_recv_bytes(c, buf, bytes, from) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(*), intent(inout) :: buf(*)
            integer(c_size_t), value :: bytes
            integer(c_int), value :: from
            integer(c_int) :: res
        end function
        function ctn_comm_barrier(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_agree(c, text) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int) :: res
        end function
        subroutine ctn_comm_fail(c, message) bind(C)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: message(*)
        end subroutine
        subroutine ctn_comm_break(c, message) bind(C)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: message(*)
        end subroutine
        function ctn_comm_survives(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_lost(c) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        function ctn_comm_shrink(out, c, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            type(ctn_comm), value :: c
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_comm_again(out, c, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            type(ctn_comm), value :: c
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_comm_split(out, c, color, key, opt) bind(C) result(res)
            import
            type(ctn_comm), intent(out) :: out
            type(ctn_comm), value :: c
            integer(c_int), value :: color
            integer(c_int), value :: key
            type(ctn_comm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_comm_get_stats(c, out) bind(C)
            import
            type(ctn_comm), value :: c
            type(ctn_comm_stats), intent(inout) :: out
        end subroutine
    end interface

    ! ---- context.h
    interface
        function ctn_context_new(ctx, opt) bind(C) result(res)
            import
            type(ctn_context), intent(out) :: ctx
            type(ctn_context_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_context_free(ctx) bind(C)
            import
            type(ctn_context), value :: ctx
        end subroutine
        function ctn_context_threads(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_context_float_type(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        subroutine ctn_context_get_state(ctx, out) bind(C)
            import
            type(ctn_context), value :: ctx
            type(ctn_context_state), intent(out) :: out
        end subroutine
        function ctn_context_set_state(ctx, in) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(ctn_context_state), intent(in) :: in
            integer(c_int) :: res
        end function
        function ctn_context_set_share(ctx, share) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(ctn_share), intent(in) :: share
            integer(c_int) :: res
        end function
        function ctn_scope_begin(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_scope_end(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_scope_return(ctx, t) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_scope_return_n(ctx, n, t) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: t(*)
            integer(c_int) :: res
        end function
        function ctn_context_set_training(ctx, on) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int), value :: on
            integer(c_int) :: res
        end function
        function ctn_context_set_grad(ctx, on) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int), value :: on
            integer(c_int) :: res
        end function
        function ctn_context_training(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_input_at(at, ctx, data, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            type(c_ptr), value :: data
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
        function ctn_input_strided_at(at, ctx, data, dtype, ndim, dims, strides) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            type(c_ptr), value :: data
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            integer(c_int64_t), intent(in) :: strides(*)
            type(ctn_tensor) :: res
        end function
        function ctn_number_at(at, ctx, value) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            real(c_double), value :: value
            type(ctn_tensor) :: res
        end function
        function ctn_keep(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_keep_graph(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_retain(r, t) bind(C) result(res)
            import
            type(ctn_retained), intent(inout) :: r
            type(ctn_tensor), value :: t
            integer(c_int) :: res
        end function
        function ctn_retained_value_at(at, r) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_retained), value :: r
            type(ctn_tensor) :: res
        end function
        subroutine ctn_retained_free(r) bind(C)
            import
            type(ctn_retained), value :: r
        end subroutine
        function ctn_recompute_begin(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_recompute_end(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_detach_at(at, t) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_grad_at(at, y, n, xs, gxs) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: y
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: xs(*)
            type(ctn_tensor), intent(inout) :: gxs(*)
            integer(c_int) :: res
        end function
        function ctn_with_grad(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_var_new(v, ctx, name, kind, dtype, ndim, dims) bind(C) result(res)
            import
            type(ctn_var), intent(out) :: v
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: kind
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            integer(c_int) :: res
        end function
        subroutine ctn_var_free(v) bind(C)
            import
            type(ctn_var), value :: v
        end subroutine
        function ctn_var_name(v) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(c_ptr) :: res
        end function
        function ctn_var_desc(v) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(c_ptr) :: res
        end function
        function ctn_var_kind_of(v) bind(C) result(res)
            import
            type(ctn_var), value :: v
            integer(c_int) :: res
        end function
        subroutine ctn_var_set_trainable(v, on) bind(C)
            import
            type(ctn_var), value :: v
            integer(c_int), value :: on
        end subroutine
        function ctn_var_trainable(v) bind(C) result(res)
            import
            type(ctn_var), value :: v
            integer(c_int) :: res
        end function
        function ctn_var_context(v) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(ctn_context) :: res
        end function
        function ctn_var_get(v, dst, bytes) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(*), intent(inout) :: dst(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: res
        end function
        function ctn_var_set(v, src, bytes) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(*), intent(in) :: src(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: res
        end function
        function ctn_var_grad(v, dst, bytes) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(*), intent(inout) :: dst(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: res
        end function
        function ctn_use_at(at, v) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_var), value :: v
            type(ctn_tensor) :: res
        end function
        function ctn_assign_at(at, v, t) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_var), value :: v
            type(ctn_tensor), value :: t
            integer(c_int) :: res
        end function
        function ctn_flush(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        subroutine ctn_context_get_stats(ctx, out) bind(C)
            import
            type(ctn_context), value :: ctx
            type(ctn_plan_stats), intent(out) :: out
        end subroutine
        function ctn_context_plan_text(ctx, buf, n) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_int) :: res
        end function
        function ctn_context_decisions_text(ctx, buf, n) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_int) :: res
        end function
        function ctn_context_visit_plan(ctx, fn, user) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_context_write_trace(ctx, path) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: res
        end function
        subroutine ctn_context_set_profile(ctx, on) bind(C)
            import
            type(ctn_context), value :: ctx
            integer(c_int), value :: on
        end subroutine
    end interface

    ! ---- data.h: datasets
    interface
        function ctn_dataset_new(ds, vt, self) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset_vt), intent(in) :: vt
            type(c_ptr), value :: self
            integer(c_int) :: res
        end function
        subroutine ctn_dataset_free(ds) bind(C)
            import
            type(ctn_dataset), value :: ds
        end subroutine
        function ctn_dataset_count(ds) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int64_t) :: res
        end function
        function ctn_dataset_fields(ds) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int) :: res
        end function
        function ctn_dataset_field(ds, f) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int), value :: f
            type(c_ptr) :: res
        end function
        function ctn_dataset_length(ds, f, index) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int), value :: f
            integer(c_int64_t), value :: index
            integer(c_int64_t) :: res
        end function
        function ctn_dataset_sample(ds, s, dst) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            type(ctn_sample), intent(in) :: s
            type(c_ptr), intent(in) :: dst(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_get(ds, index, dst) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int64_t), value :: index
            type(c_ptr), intent(in) :: dst(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_name(ds, index, buf, n) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int64_t), value :: index
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_int) :: res
        end function
        function ctn_dataset_class(ds, k) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int64_t), value :: k
            type(c_ptr) :: res
        end function
        function ctn_dataset_classes(ds) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int64_t) :: res
        end function
        function ctn_dataset_resizes(ds) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int) :: res
        end function
        function ctn_arrays_open(ds, count, fields, field, data) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            integer(c_int64_t), value :: count
            integer(c_int), value :: fields
            type(ctn_field), intent(in) :: field(*)
            type(c_ptr), intent(in) :: data(*)
            integer(c_int) :: res
        end function
        function ctn_ragged_open(ds, count, fields, field, data, offset) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            integer(c_int64_t), value :: count
            integer(c_int), value :: fields
            type(ctn_field), intent(in) :: field(*)
            type(c_ptr), intent(in) :: data(*)
            type(c_ptr), intent(in) :: offset(*)
            integer(c_int) :: res
        end function
        function ctn_idx_open(ds, images_path, labels_path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: images_path(*)
            character(kind=c_char), intent(in), optional :: labels_path(*)
            type(ctn_idx_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_mnist_open(ds, dir, split) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: split
            integer(c_int) :: res
        end function
        function ctn_cifar10_open(ds, dir, split, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: split
            type(ctn_cifar_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_cifar100_open(ds, dir, split, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: split
            type(ctn_cifar_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_svhn_open(ds, dir, split, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: split
            type(ctn_cifar_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- data.h: samplers
    interface
        function ctn_sampler_sequential(s, count) bind(C) result(res)
            import
            type(ctn_sampler), intent(out) :: s
            integer(c_int64_t), value :: count
            integer(c_int) :: res
        end function
        function ctn_sampler_shuffled(s, count, seed) bind(C) result(res)
            import
            type(ctn_sampler), intent(out) :: s
            integer(c_int64_t), value :: count
            integer(c_int64_t), value :: seed
            integer(c_int) :: res
        end function
        function ctn_sampler_weighted(s, count, weight, seed) bind(C) result(res)
            import
            type(ctn_sampler), intent(out) :: s
            integer(c_int64_t), value :: count
            real(c_double), intent(in) :: weight(*)
            integer(c_int64_t), value :: seed
            integer(c_int) :: res
        end function
        function ctn_sampler_bucketed(s, count, length, batch, seed) bind(C) result(res)
            import
            type(ctn_sampler), intent(out) :: s
            integer(c_int64_t), value :: count
            integer(c_int64_t), intent(in) :: length(*)
            integer(c_int64_t), value :: batch
            integer(c_int64_t), value :: seed
            integer(c_int) :: res
        end function
        function ctn_sampler_new(s, count, fn, user, seed) bind(C) result(res)
            import
            type(ctn_sampler), intent(out) :: s
            integer(c_int64_t), value :: count
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int64_t), value :: seed
            integer(c_int) :: res
        end function
        subroutine ctn_sampler_free(s) bind(C)
            import
            type(ctn_sampler), value :: s
        end subroutine
        function ctn_sampler_shard(s, rank, size) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            integer(c_int), value :: rank
            integer(c_int), value :: size
            integer(c_int) :: res
        end function
        function ctn_sampler_count(s) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            integer(c_int64_t) :: res
        end function
        function ctn_sampler_total(s) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            integer(c_int64_t) :: res
        end function
        function ctn_sampler_index(s, epoch, position) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            integer(c_int64_t), value :: epoch
            integer(c_int64_t), value :: position
            integer(c_int64_t) :: res
        end function
        function ctn_sampler_get_state(s) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            type(ctn_sampler_state) :: res
        end function
        function ctn_sampler_set_state(s, state) bind(C) result(res)
            import
            type(ctn_sampler), value :: s
            type(ctn_sampler_state), intent(in) :: state
            integer(c_int) :: res
        end function
    end interface

    ! ---- data.h: loader
    interface
        function ctn_loader_new(l, ds, s, opt) bind(C) result(res)
            import
            type(ctn_loader), intent(out) :: l
            type(ctn_dataset), value :: ds
            type(ctn_sampler), value :: s
            type(ctn_loader_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_loader_free(l) bind(C)
            import
            type(ctn_loader), value :: l
        end subroutine
        function ctn_loader_next(l, b) bind(C) result(res)
            import
            type(ctn_loader), value :: l
            type(ctn_batch), intent(out) :: b
            integer(c_int) :: res
        end function
        function ctn_batch_tensor_at(at, ctx, b, field) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            type(ctn_batch), intent(in) :: b
            integer(c_int), value :: field
            type(ctn_tensor) :: res
        end function
        subroutine ctn_loader_get_stats(l, out) bind(C)
            import
            type(ctn_loader), value :: l
            type(ctn_loader_stats), intent(out) :: out
        end subroutine
        function ctn_loader_get_state(l) bind(C) result(res)
            import
            type(ctn_loader), value :: l
            type(ctn_sampler_state) :: res
        end function
        function ctn_loader_set_state(l, state) bind(C) result(res)
            import
            type(ctn_loader), value :: l
            type(ctn_sampler_state), intent(in) :: state
            integer(c_int) :: res
        end function
    end interface

    ! ---- datasets.h: arrays
    interface
        function ctn_files_open(ds, fields, path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            integer(c_int), value :: fields
            type(c_ptr), intent(in) :: path(*)
            type(ctn_files_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_npy_save(path, count, field, data) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int64_t), value :: count
            type(ctn_field), intent(in) :: field
            type(*), intent(in) :: data(*)
            integer(c_int) :: res
        end function
        function ctn_csv_open(ds, path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_csv_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_csv_column(ds, field, k) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int), value :: field
            integer(c_int64_t), value :: k
            type(c_ptr) :: res
        end function
        function ctn_tokens_open(ds, path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_tokens_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_text_lines_open(ds, n, path) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            integer(c_int), value :: n
            type(c_ptr), intent(in) :: path(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- datasets.h: derived datasets
    interface
        function ctn_dataset_slice(ds, base, first, count) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            integer(c_int64_t), value :: first
            integer(c_int64_t), value :: count
            integer(c_int) :: res
        end function
        function ctn_dataset_subset(ds, base, n, index) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            integer(c_int64_t), value :: n
            integer(c_int64_t), intent(in) :: index(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_split(first, second, base, share, seed) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: first
            type(ctn_dataset), intent(out) :: second
            type(ctn_dataset), value :: base
            real(c_double), value :: share
            integer(c_int64_t), value :: seed
            integer(c_int) :: res
        end function
        function ctn_dataset_concat(ds, n, parts) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            integer(c_int), value :: n
            type(ctn_dataset), intent(in) :: parts(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_relabel(ds, base, n, name) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            integer(c_int64_t), value :: n
            type(c_ptr), intent(in) :: name(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_mask(ds, base, t, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            type(ctn_tokenizer), value :: t
            type(ctn_mask_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_dataset_transform(ds, base, fields, field, fn, user) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            integer(c_int), value :: fields
            type(ctn_field), intent(in) :: field(*)
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
    end interface

    ! ---- datasets.h: mean and standard deviation
    interface
        function ctn_dataset_moments(ds, field, n, mean, std) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            integer(c_int), value :: field
            integer(c_int64_t), value :: n
            real(c_double), intent(out) :: mean(*)
            real(c_double), intent(out) :: std(*)
            integer(c_int) :: res
        end function
        function ctn_dataset_standardize(ds, base, field, n, mean, std) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            integer(c_int), value :: field
            integer(c_int64_t), value :: n
            real(c_double), intent(in) :: mean(*)
            real(c_double), intent(in) :: std(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- dist.h
    interface
        function ctn_dist_optim(o, c, opt) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            type(ctn_comm), value :: c
            type(ctn_dist_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_dist_get_stats(o, out) bind(C)
            import
            type(ctn_optim), value :: o
            type(ctn_dist_stats), intent(inout) :: out
        end subroutine
        function ctn_dist_step_empty_at(at, o) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_optim), value :: o
            integer(c_int) :: res
        end function
        function ctn_dist_values(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            integer(c_int) :: res
        end function
        function ctn_dist_broadcast_vars(c, vars, root) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(ctn_vars), value :: vars
            integer(c_int), value :: root
            integer(c_int) :: res
        end function
        function ctn_dist_sync_batch_norm(m, c) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
    end interface

    ! ---- dist.h: samples and values
    interface
        function ctn_dist_mean(c, n, value, weight) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            integer(c_int), value :: n
            real(c_double), intent(inout) :: value(*)
            real(c_double), intent(inout) :: weight(*)
            integer(c_int) :: res
        end function
        function ctn_dist_evaluate(c, ctx, loader, loss, self, fn, user) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            type(ctn_context), value :: ctx
            type(ctn_loader), value :: loader
            type(c_funptr), value :: loss
            type(c_ptr), value :: self
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_dist_trainer(tr, c, when) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_comm), value :: c
            type(ctn_trigger), intent(in), optional :: when
            integer(c_int) :: res
        end function
    end interface

    ! ---- dist.h: networks in parts
    interface
        function ctn_dist_state_save(c, dir, n, parts) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: n
            type(ctn_state_part), intent(in) :: parts(*)
            integer(c_int) :: res
        end function
        function ctn_dist_state_load(c, dir, n, parts) bind(C) result(res)
            import
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int), value :: n
            type(ctn_state_part), intent(in) :: parts(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- dist.h: where the time goes
    interface
        function ctn_dist_timeline_has(rank, size, ranks) bind(C) result(res)
            import
            integer(c_int), value :: rank
            integer(c_int), value :: size
            integer(c_int), value :: ranks
            integer(c_int) :: res
        end function
        function ctn_dist_timeline_begin(ctx) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_dist_timeline_write(ctx, c, path, steps, ranks) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(ctn_comm), value :: c
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int64_t), value :: steps
            integer(c_int), value :: ranks
            integer(c_int) :: res
        end function
        function ctn_extend_timeline(tr, path, steps, ranks) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int64_t), value :: steps
            integer(c_int), value :: ranks
            integer(c_int) :: res
        end function
    end interface

    ! ---- dist_ops.h: all ranks together
    interface
        function ctn_dist_allreduce_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_dist_allreduce_max_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_dist_allreduce_min_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_dist_reduce_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_reduce_max_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_reduce_min_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_broadcast_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_allgather_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_dist_reduce_scatter_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_dist_gather_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_scatter_at(at, c, x, root) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: root
            type(ctn_tensor) :: res
        end function
        function ctn_dist_alltoall_at(at, c, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- dist_ops.h: one rank to another
    interface
        function ctn_dist_send_at(at, c, x, rank) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_tensor), value :: x
            integer(c_int), value :: rank
            type(ctn_tensor) :: res
        end function
        function ctn_dist_recv_at(at, c, ctx, rank, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_comm), value :: c
            type(ctn_context), value :: ctx
            integer(c_int), value :: rank
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- dist_ops.h: a network whose parts are on different ranks
    interface
        function ctn_dist_chain_new(out, ctx, c) bind(C) result(res)
            import
            type(ctn_dist_chain), intent(out) :: out
            type(ctn_context), value :: ctx
            type(ctn_comm), value :: c
            integer(c_int) :: res
        end function
        subroutine ctn_dist_chain_free(chain) bind(C)
            import
            type(ctn_dist_chain), value :: chain
        end subroutine
        function ctn_dist_chain_add_at(at, chain, m) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_dist_chain), value :: chain
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_dist_chain_recv_at(at, chain, rank, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_dist_chain), value :: chain
            integer(c_int), value :: rank
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            integer(c_int) :: res
        end function
        function ctn_dist_chain_send_at(at, chain, rank) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_dist_chain), value :: chain
            integer(c_int), value :: rank
            integer(c_int) :: res
        end function
        function ctn_dist_chain_call_at(at, chain, x, rows) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_dist_chain), value :: chain
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: rows
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- dist_ops.h: a field that is divided over ranks
    interface
        function ctn_dist_grid_new(out, c, ndim, ranks, periodic) bind(C) result(res)
            import
            type(ctn_dist_grid), intent(out) :: out
            type(ctn_comm), value :: c
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: ranks(*)
            integer(c_int), value :: periodic
            integer(c_int) :: res
        end function
        subroutine ctn_dist_grid_free(g) bind(C)
            import
            type(ctn_dist_grid), value :: g
        end subroutine
        function ctn_dist_grid_length(g, dimension, length) bind(C) result(res)
            import
            type(ctn_dist_grid), value :: g
            integer(c_int), value :: dimension
            integer(c_int64_t), value :: length
            integer(c_int64_t) :: res
        end function
        function ctn_dist_grid_begin(g, dimension, length) bind(C) result(res)
            import
            type(ctn_dist_grid), value :: g
            integer(c_int), value :: dimension
            integer(c_int64_t), value :: length
            integer(c_int64_t) :: res
        end function
        function ctn_dist_halo_at(at, g, x, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_dist_grid), value :: g
            type(ctn_tensor), value :: x
            type(ctn_dist_halo_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_dist_field(m, g) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(ctn_dist_grid), value :: g
            integer(c_int) :: res
        end function
    end interface

    ! ---- env.h
    interface
        function ctn_env_count() bind(C) result(res)
            import
            integer(c_int) :: res
        end function
        function ctn_env_get(i, out) bind(C) result(res)
            import
            integer(c_int), value :: i
            type(ctn_env_entry), intent(out) :: out
            integer(c_int) :: res
        end function
    end interface

    ! ---- generate.h
    interface
        function ctn_generator_new(g, m, opt) bind(C) result(res)
            import
            type(ctn_generator), intent(out) :: g
            type(ctn_module), value :: m
            type(ctn_generator_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_generator_free(g) bind(C)
            import
            type(ctn_generator), value :: g
        end subroutine
        function ctn_generator_start(g, n, prompt, length, next) bind(C) result(res)
            import
            type(ctn_generator), value :: g
            integer(c_int64_t), value :: n
            type(c_ptr), intent(in) :: prompt(*)
            integer(c_int64_t), intent(in) :: length(*)
            integer(c_int32_t), intent(out) :: next(*)
            integer(c_int) :: res
        end function
        function ctn_generator_next(g, tokens, next) bind(C) result(res)
            import
            type(ctn_generator), value :: g
            integer(c_int32_t), intent(in) :: tokens(*)
            integer(c_int32_t), intent(out) :: next(*)
            integer(c_int) :: res
        end function
        function ctn_generator_sequences(g) bind(C) result(res)
            import
            type(ctn_generator), value :: g
            integer(c_int64_t) :: res
        end function
        function ctn_generator_logits(g) bind(C) result(res)
            import
            type(ctn_generator), value :: g
            type(c_ptr) :: res
        end function
    end interface

    ! ---- image.h
    interface
        function ctn_image_decode(file, bytes, opt, s, dst) bind(C) result(res)
            import
            type(*), intent(in) :: file(*)
            integer(c_size_t), value :: bytes
            type(ctn_image_opt), intent(in), optional :: opt
            type(ctn_sample), intent(in), optional :: s
            type(*), intent(inout) :: dst(*)
            integer(c_int) :: res
        end function
        function ctn_image_folder_open(ds, dir, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            type(ctn_image_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_image_folder_list(ds, buf, n) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            type(*), intent(inout) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_size_t) :: res
        end function
        function ctn_image_folder_open_list(ds, dir, list, bytes, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: dir(*)
            type(*), intent(in) :: list(*)
            integer(c_size_t), value :: bytes
            type(ctn_image_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_image_list_open(ds, list, root, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: list(*)
            character(kind=c_char), intent(in) :: root(*)
            type(ctn_image_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_segmentation_open(ds, path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_segmentation_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_shards_open(ds, path, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_shards_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_shards_index(ds, buf, n) bind(C) result(res)
            import
            type(ctn_dataset), value :: ds
            type(*), intent(inout) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_size_t) :: res
        end function
        function ctn_shards_pack(dir, out, samples, opt) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: dir(*)
            character(kind=c_char), intent(in) :: out(*)
            integer(c_int64_t), intent(out), optional :: samples
            type(ctn_pack_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_augment_new(ds, base, opt) bind(C) result(res)
            import
            type(ctn_dataset), intent(out) :: ds
            type(ctn_dataset), value :: base
            type(ctn_image_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- info.h
    interface
        function ctn_build_count() bind(C) result(res)
            import
            integer(c_int) :: res
        end function
        function ctn_build_get(i, out) bind(C) result(res)
            import
            integer(c_int), value :: i
            type(ctn_build_entry), intent(out) :: out
            integer(c_int) :: res
        end function
        subroutine ctn_machine_get(out) bind(C)
            import
            type(ctn_machine), intent(out) :: out
        end subroutine
    end interface

    ! ---- io.h: weights
    interface
        function ctn_weights_save(m, path) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: res
        end function
        function ctn_weights_save_with(m, path, opt) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_weights_save_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_weights_load(m, path, opt) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_weights_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_weights_compare(m, path, opt, fn, user) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_weights_opt), intent(in), optional :: opt
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
    end interface

    ! ---- io.h: folders of published models
    interface
        function ctn_published_write(m, from, folder) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: from(*)
            character(kind=c_char), intent(in) :: folder(*)
            integer(c_int) :: res
        end function
        function ctn_lora_open(m, folder) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: folder(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- io.h: files of named arrays
    interface
        function ctn_weights_open(w, path) bind(C) result(res)
            import
            type(ctn_weights), intent(out) :: w
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: res
        end function
        subroutine ctn_weights_free(w) bind(C)
            import
            type(ctn_weights), value :: w
        end subroutine
        function ctn_weights_format(w) bind(C) result(res)
            import
            type(ctn_weights), value :: w
            type(c_ptr) :: res
        end function
        function ctn_weights_arrays(w) bind(C) result(res)
            import
            type(ctn_weights), value :: w
            integer(c_int64_t) :: res
        end function
        function ctn_weights_get_array(w, i, out) bind(C) result(res)
            import
            type(ctn_weights), value :: w
            integer(c_int64_t), value :: i
            type(ctn_weights_array), intent(out) :: out
            integer(c_int) :: res
        end function
        function ctn_weights_find(w, name) bind(C) result(res)
            import
            type(ctn_weights), value :: w
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int64_t) :: res
        end function
        function ctn_weights_read(w, i, dtype, dst, bytes) bind(C) result(res)
            import
            type(ctn_weights), value :: w
            integer(c_int64_t), value :: i
            integer(c_int), value :: dtype
            type(*), intent(inout) :: dst(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: res
        end function
        function ctn_weights_write(path, n, items) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: n
            type(ctn_weights_item), intent(in) :: items(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- io.h: state of a training run
    interface
        function ctn_part_module(prefix, m) bind(C) result(res)
            import
            type(c_ptr), value :: prefix
            type(ctn_module), value :: m
            type(ctn_state_part) :: res
        end function
        function ctn_part_optim(prefix, o) bind(C) result(res)
            import
            type(c_ptr), value :: prefix
            type(ctn_optim), value :: o
            type(ctn_state_part) :: res
        end function
        function ctn_part_context(prefix, ctx) bind(C) result(res)
            import
            type(c_ptr), value :: prefix
            type(ctn_context), value :: ctx
            type(ctn_state_part) :: res
        end function
        function ctn_part_loader(prefix, l) bind(C) result(res)
            import
            type(c_ptr), value :: prefix
            type(ctn_loader), value :: l
            type(ctn_state_part) :: res
        end function
        function ctn_state_save(path, n, parts) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: n
            type(ctn_state_part), intent(in) :: parts(*)
            integer(c_int) :: res
        end function
        function ctn_state_load(path, n, parts) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: n
            type(ctn_state_part), intent(in) :: parts(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- log.h
    interface
        subroutine ctn_set_log(fn, user) bind(C)
            import
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
        end subroutine
        subroutine ctn_set_notice(fn, user) bind(C)
            import
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
        end subroutine
    end interface

    ! ---- mpi.h
    interface
        ! ctn_comm_from_mpi is defined in a header.
    end interface

    ! ---- nn.h: initial values
    interface
        function ctn_var_init(v, init) bind(C) result(res)
            import
            type(ctn_var), value :: v
            type(ctn_init), intent(in), optional :: init
            integer(c_int) :: res
        end function
    end interface

    ! ---- nn.h: the tree
    interface
        function ctn_module_new(m, ctx, forward, self, release) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(c_funptr), value :: forward
            type(c_ptr), value :: self
            type(c_funptr), value :: release
            integer(c_int) :: res
        end function
        function ctn_module_new_multi(m, ctx, forward, self, release) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(c_funptr), value :: forward
            type(c_ptr), value :: self
            type(c_funptr), value :: release
            integer(c_int) :: res
        end function
        subroutine ctn_module_free(m) bind(C)
            import
            type(ctn_module), value :: m
        end subroutine
        function ctn_module_add(m, name, child) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_module), value :: child
            integer(c_int) :: res
        end function
        function ctn_module_children(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_module_child(m, i) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int), value :: i
            type(ctn_module) :: res
        end function
        function ctn_module_context(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(ctn_context) :: res
        end function
        function ctn_module_predicts(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_module_ends(m, ids, room) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int32_t), intent(out) :: ids
            integer(c_int), value :: room
            integer(c_int) :: res
        end function
        function ctn_module_param(v, m, name, dtype, ndim, dims, init) bind(C) result(res)
            import
            type(ctn_var), intent(out), optional :: v
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_init), intent(in), optional :: init
            integer(c_int) :: res
        end function
        function ctn_module_state(v, m, name, dtype, ndim, dims, init) bind(C) result(res)
            import
            type(ctn_var), intent(out), optional :: v
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_init), intent(in), optional :: init
            integer(c_int) :: res
        end function
        function ctn_module_tie(m, name, v) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_var), value :: v
            integer(c_int) :: res
        end function
        function ctn_call_at(at, m, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_module), value :: m
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_call_multi_at(at, m, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_module), value :: m
            type(ctn_tensors), value :: x
            type(ctn_tensors) :: res
        end function
        function ctn_module_set_recompute(m, on) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int), value :: on
            integer(c_int) :: res
        end function
        function ctn_module_source(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(c_ptr) :: res
        end function
        function ctn_params(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(ctn_vars) :: res
        end function
        function ctn_module_find(m, name) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_var) :: res
        end function
        function ctn_module_visit(m, fn, user) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_module_visit_modules(m, fn, user) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
    end interface

    ! ---- nn.h: frozen parameters
    interface
        function ctn_module_set_trainable(m, pattern, on) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in), optional :: pattern(*)
            integer(c_int), value :: on
            integer(c_int) :: res
        end function
        function ctn_module_freeze_statistics(m, pattern, on) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in), optional :: pattern(*)
            integer(c_int), value :: on
            integer(c_int) :: res
        end function
    end interface

    ! ---- nn.h: copies
    interface
        function ctn_module_copy(copy, m) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: copy
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_module_share(copy, ctx, m) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: copy
            type(ctn_context), value :: ctx
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_module_set_copy(m, fn) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(c_funptr), value :: fn
            integer(c_int) :: res
        end function
    end interface

    ! ---- nn.h: ready-made modules
    interface
        function ctn_sequential_new(m, ctx, n, modules) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int), value :: n
            type(ctn_module), intent(in) :: modules(*)
            integer(c_int) :: res
        end function
        function ctn_module_list_new(m, ctx, n, modules) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int), value :: n
            type(ctn_module), intent(in) :: modules(*)
            integer(c_int) :: res
        end function
        function ctn_linear_new(m, ctx, in, out, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            type(ctn_linear_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_conv_new(m, ctx, in, out, spatial, kernel, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: kernel(*)
            type(ctn_conv_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_conv_transpose_new(m, ctx, in, out, spatial, kernel, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: kernel(*)
            type(ctn_conv_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_deform_conv_new(m, ctx, in, out, spatial, kernel, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: kernel(*)
            type(ctn_conv_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_spectral_conv_new(m, ctx, in, out, spatial, modes, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: modes(*)
            type(ctn_spectral_conv_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_batch_norm_new(m, ctx, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: channels
            type(ctn_batch_norm_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_decorrelated_batch_norm_new(m, ctx, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: channels
            type(ctn_decorrelated_batch_norm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_batch_renorm_new(m, ctx, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: channels
            type(ctn_batch_renorm_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_batch_renorm_set_limits(m, rmax, dmax) bind(C) result(res)
            import
            type(ctn_module), value :: m
            real(c_double), value :: rmax
            real(c_double), value :: dmax
            integer(c_int) :: res
        end function
        function ctn_group_norm_new(m, ctx, groups, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: groups
            integer(c_int64_t), value :: channels
            type(ctn_norm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_layer_norm_new(m, ctx, ndim, dims, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_norm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_rms_norm_new(m, ctx, ndim, dims, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_norm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_embedding_new(m, ctx, rows, width, weight) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: rows
            integer(c_int64_t), value :: width
            type(ctn_init), intent(in), optional :: weight
            integer(c_int) :: res
        end function
        function ctn_lstm_new(m, ctx, in, hidden, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            type(ctn_rnn_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_gru_new(m, ctx, in, hidden, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            type(ctn_rnn_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_rnn_new(m, ctx, in, hidden, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            type(ctn_rnn_module_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_child_sum_tree_lstm_new(m, ctx, in, hidden) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            integer(c_int) :: res
        end function
        function ctn_nary_tree_lstm_new(m, ctx, in, hidden, children) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            integer(c_int64_t), value :: children
            integer(c_int) :: res
        end function
        function ctn_peephole_lstm_new(m, ctx, in, hidden) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: hidden
            integer(c_int) :: res
        end function
        function ctn_crf_new(m, ctx, K, init) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: K
            type(ctn_init), intent(in), optional :: init
            integer(c_int) :: res
        end function
        function ctn_graph_conv_new(m, ctx, in, out, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            type(ctn_graph_conv_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_graph_attention_new(m, ctx, in, out, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: in
            integer(c_int64_t), value :: out
            type(ctn_graph_attention_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_message_passing_new(m, ctx, edge, node, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_module), value :: edge
            type(ctn_module), value :: node
            type(ctn_message_passing_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_dropout_new(m, ctx, rate) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            real(c_double), value :: rate
            integer(c_int) :: res
        end function
        function ctn_max_pool_new(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_pool_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_avg_pool_new(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_pool_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_flatten_new(m, ctx) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int) :: res
        end function
        function ctn_inception_new(m, ctx, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: channels
            type(ctn_inception_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_inception_bn_new(m, ctx, channels, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            integer(c_int64_t), value :: channels
            type(ctn_inception_bn_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_activation_new(m, ctx, op) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(c_funptr), value :: op
            integer(c_int) :: res
        end function
    end interface

    ! ---- nn.h: adapters
    interface
        function ctn_lora_add(m, opt) bind(C) result(res)
            import
            type(ctn_module), value :: m
            type(ctn_lora_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lora_merge(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_weight_norm_add(m, name, dim) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), value :: dim
            integer(c_int) :: res
        end function
        function ctn_spectral_norm_add(m, name, opt) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_spectral_norm_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- onnx.h
    interface
        function ctn_onnx_open(m, ctx, path, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_onnx_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_onnx_inputs(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_onnx_outputs(m) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int) :: res
        end function
        function ctn_onnx_input(m, i, out) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int), value :: i
            type(ctn_onnx_port), intent(out) :: out
            integer(c_int) :: res
        end function
        function ctn_onnx_output(m, i, out) bind(C) result(res)
            import
            type(ctn_module), value :: m
            integer(c_int), value :: i
            type(ctn_onnx_port), intent(out) :: out
            integer(c_int) :: res
        end function
        function ctn_onnx_run_at(at, m, nx, x, ny, y) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_module), value :: m
            integer(c_int), value :: nx
            type(ctn_tensor), intent(in) :: x(*)
            integer(c_int), value :: ny
            type(ctn_tensor), intent(inout) :: y(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- onnx_export.h
    interface
        function ctn_onnx_export(path, inputs, outputs, opt) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_tensors), value :: inputs
            type(ctn_tensors), value :: outputs
            type(ctn_onnx_export_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_onnx_export_module(m, path, n, in, opt) bind(C) result(res)
            import
            type(ctn_module), value :: m
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: n
            type(ctn_field), intent(in) :: in(*)
            type(ctn_onnx_export_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- op.h
    interface
        function ctn_apply_at(at, ctx, op, nin, in, args, out) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            type(ctn_op), intent(inout) :: op
            integer(c_int), value :: nin
            type(ctn_tensor), intent(in) :: in(*)
            type(ctn_op_args), intent(in) :: args
            type(ctn_tensor), intent(inout) :: out(*)
            integer(c_int) :: res
        end function
        function ctn_gradcheck(ctx, fn, self, n, x, tol, worst) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(c_funptr), value :: fn
            type(c_ptr), value :: self
            integer(c_int), value :: n
            type(ctn_gradcheck_input), intent(in) :: x(*)
            real(c_double), value :: tol
            real(c_double), intent(out) :: worst
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops.h: matrix products
    interface
        function ctn_matmul_at(at, a, b, trans_a, trans_b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            integer(c_int), value :: trans_a
            integer(c_int), value :: trans_b
            type(ctn_tensor) :: res
        end function
        function ctn_linear_at(at, x, w, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops.h: arithmetic, with broadcasting
    interface
        function ctn_add_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops.h: activations
    interface
        function ctn_relu_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops.h: reductions
    interface
        function ctn_sum_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops.h: shapes
    interface
        function ctn_reshape_at(at, x, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
        function ctn_transpose_at(at, x, naxes, axes) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            type(ctn_tensor) :: res
        end function
        function ctn_broadcast_to_at(at, x, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
        function ctn_full_at(at, ctx, value, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            real(c_double), value :: value
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops.h: losses
    interface
        function ctn_softmax_cross_entropy_with_at(at, x, t, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            type(ctn_softmax_cross_entropy_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_linear_cross_entropy_at(at, x, w, t, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: t
            type(ctn_softmax_cross_entropy_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_fft.h
    interface
        function ctn_fft_at(at, x, naxes, axes, norm) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: norm
            type(ctn_tensor) :: res
        end function
        function ctn_ifft_at(at, x, naxes, axes, norm) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: norm
            type(ctn_tensor) :: res
        end function
        function ctn_rfft_at(at, x, naxes, axes, norm) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: norm
            type(ctn_tensor) :: res
        end function
        function ctn_irfft_at(at, x, naxes, axes, n_last, norm) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int64_t), value :: n_last
            integer(c_int), value :: norm
            type(ctn_tensor) :: res
        end function
        function ctn_complex_mul_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_graph.h: rows by index
    interface
        function ctn_index_select_at(at, x, index, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_index_add_at(at, x, index, src, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            type(ctn_tensor), value :: src
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_scatter_at(at, x, index, src, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            type(ctn_tensor), value :: src
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_graph.h: segments
    interface
        function ctn_segment_sum_at(at, x, ids, n) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: ids
            integer(c_int64_t), value :: n
            type(ctn_tensor) :: res
        end function
        function ctn_segment_mean_at(at, x, ids, n) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: ids
            integer(c_int64_t), value :: n
            type(ctn_tensor) :: res
        end function
        function ctn_segment_max_at(at, x, ids, n) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: ids
            integer(c_int64_t), value :: n
            type(ctn_tensor) :: res
        end function
        function ctn_segment_softmax_at(at, x, ids, n) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: ids
            integer(c_int64_t), value :: n
            type(ctn_tensor) :: res
        end function
        function ctn_group_ids_at(at, ids, segments, offsets, order) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: ids
            integer(c_int64_t), value :: segments
            type(ctn_tensor), intent(out), optional :: offsets
            type(ctn_tensor), intent(out), optional :: order
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_graph.h: sparse matrices
    interface
        function ctn_spmm_at(at, rowptr, col, value, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: rowptr
            type(ctn_tensor), value :: col
            type(ctn_tensor), value :: value
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: convolution
    interface
        function ctn_conv_at(at, x, w, b, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: b
            type(ctn_conv_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_conv_transpose_at(at, x, w, b, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: b
            type(ctn_conv_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_im2col_at(at, x, spatial, kernel, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: spatial
            integer(c_int64_t), intent(in) :: kernel(*)
            type(ctn_conv_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_local_conv_at(at, x, w, b, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: b
            type(ctn_conv_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_deform_conv_at(at, x, offset, w, b, mask, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: offset
            type(ctn_tensor), value :: w
            type(ctn_tensor), value :: b
            type(ctn_tensor), value :: mask
            type(ctn_conv_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: pooling
    interface
        function ctn_max_pool_at(at, x, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_pool_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_max_pool_places_at(at, x, opt, y, places) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_pool_opt), intent(in), optional :: opt
            type(ctn_tensor), intent(out) :: y
            type(ctn_tensor), intent(out) :: places
            integer(c_int) :: res
        end function
        function ctn_max_unpool_at(at, y, places, opt, n, size) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: y
            type(ctn_tensor), value :: places
            type(ctn_pool_opt), intent(in), optional :: opt
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: size(*)
            type(ctn_tensor) :: res
        end function
        function ctn_avg_pool_at(at, x, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_pool_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_global_avg_pool_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_adaptive_avg_pool_at(at, x, n, size) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: size(*)
            type(ctn_tensor) :: res
        end function
        function ctn_spatial_pyramid_pool_at(at, x, levels) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: levels
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: regions of interest
    interface
        function ctn_roi_align_at(at, x, rois, roi_index, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: rois
            type(ctn_tensor), value :: roi_index
            type(ctn_roi_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_roi_pool_at(at, x, rois, roi_index, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: rois
            type(ctn_tensor), value :: roi_index
            type(ctn_roi_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: normalisation
    interface
        function ctn_batch_norm_at(at, x, scale, shift, mean, var, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: scale
            type(ctn_tensor), value :: shift
            type(ctn_var), value :: mean
            type(ctn_var), value :: var
            type(ctn_batch_norm_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_decorrelated_batch_norm_at(at, x, mean, projection, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_var), value :: mean
            type(ctn_var), value :: projection
            type(ctn_decorrelated_batch_norm_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_fixed_decorrelated_batch_norm_at(at, x, mean, projection) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: mean
            type(ctn_tensor), value :: projection
            type(ctn_tensor) :: res
        end function
        function ctn_batch_renorm_at(at, x, scale, shift, mean, var, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: scale
            type(ctn_tensor), value :: shift
            type(ctn_var), value :: mean
            type(ctn_var), value :: var
            type(ctn_batch_renorm_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_channel_affine_at(at, x, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_group_norm_at(at, x, groups, scale, shift, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: groups
            type(ctn_tensor), value :: scale
            type(ctn_tensor), value :: shift
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
        function ctn_instance_norm_at(at, x, scale, shift, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: scale
            type(ctn_tensor), value :: shift
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
        function ctn_local_response_norm_at(at, x, size, k, alpha, beta) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: size
            real(c_double), value :: k
            real(c_double), value :: alpha
            real(c_double), value :: beta
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: resizing
    interface
        function ctn_resize_at(at, x, kind, n, size) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: kind
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: size(*)
            type(ctn_tensor) :: res
        end function
        function ctn_grid_sample_at(at, x, grid, align_corners) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: grid
            integer(c_int), value :: align_corners
            type(ctn_tensor) :: res
        end function
        function ctn_affine_grid_at(at, theta, height, width, align_corners) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: theta
            integer(c_int64_t), value :: height
            integer(c_int64_t), value :: width
            integer(c_int), value :: align_corners
            type(ctn_tensor) :: res
        end function
        function ctn_depth_to_space_at(at, x, r) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: r
            type(ctn_tensor) :: res
        end function
        function ctn_space_to_depth_at(at, x, r) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: r
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_image.h: others
    interface
        function ctn_prelu_at(at, x, slope) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: slope
            type(ctn_tensor) :: res
        end function
        function ctn_spatial_dropout_at(at, x, rate) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: rate
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_linalg.h
    interface
        function ctn_cholesky_at(at, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_solve_triangular_at(at, a, b, upper, trans, unit) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            integer(c_int), value :: upper
            integer(c_int), value :: trans
            integer(c_int), value :: unit
            type(ctn_tensor) :: res
        end function
        function ctn_solve_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_inverse_at(at, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_det_at(at, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_slogdet_at(at, a, sign, logabs) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), intent(out), optional :: sign
            type(ctn_tensor), intent(out), optional :: logabs
            integer(c_int) :: res
        end function
        function ctn_inverse_sqrt_at(at, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_lyapunov_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_loss.h: softmax
    interface
        function ctn_softmax_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_log_softmax_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: axis
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_loss.h: losses: x and t have the same shape and float type -> (), or that shape with
    ! CTN_NONE
    interface
        function ctn_sigmoid_cross_entropy_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_mean_squared_error_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_mean_absolute_error_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_huber_at(at, x, t, delta, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            real(c_double), value :: delta
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_bernoulli_nll_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_poisson_nll_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_gaussian_nll_at(at, mean, ln_var, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: mean
            type(ctn_tensor), value :: ln_var
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_gaussian_kl_divergence_at(at, mean, ln_var, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: mean
            type(ctn_tensor), value :: ln_var
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_kl_div_at(at, x, t, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_loss.h: losses of rows: -> (), or one loss per row (...) with CTN_NONE
    interface
        function ctn_hinge_at(at, x, t, p, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: p
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_contrastive_at(at, a, b, t, margin, reduction) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor), value :: t
            real(c_double), value :: margin
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_triplet_at(at, anchor, positive, negative, margin, reduction) bind(C) &
                result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: anchor
            type(ctn_tensor), value :: positive
            type(ctn_tensor), value :: negative
            real(c_double), value :: margin
            integer(c_int), value :: reduction
            type(ctn_tensor) :: res
        end function
        function ctn_decov_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_discriminative_margin_based_clustering_loss_at(at, x, t, K, opt, variance, &
                distance, regular) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int64_t), value :: K
            type(ctn_clustering_opt), intent(in), optional :: opt
            type(ctn_tensor), intent(out), optional :: variance
            type(ctn_tensor), intent(out), optional :: distance
            type(ctn_tensor), intent(out), optional :: regular
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_loss.h: metrics, without gradient
    interface
        function ctn_accuracy_at(at, x, t, k) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            integer(c_int), value :: k
            type(ctn_tensor) :: res
        end function
        function ctn_confusion_matrix_at(at, pred, t, C) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: pred
            type(ctn_tensor), value :: t
            integer(c_int64_t), value :: C
            type(ctn_tensor) :: res
        end function
        function ctn_binary_accuracy_at(at, x, t) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_r2_score_at(at, x, t) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_classification_summary_at(at, confusion, precision, recall, f1, support) &
                bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: confusion
            type(ctn_tensor), intent(out) :: precision
            type(ctn_tensor), intent(out) :: recall
            type(ctn_tensor), intent(out) :: f1
            type(ctn_tensor), intent(out) :: support
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_loss.h: normalisation
    interface
        function ctn_layer_norm_at(at, x, n, weight, bias, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: n
            type(ctn_tensor), value :: weight
            type(ctn_tensor), value :: bias
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
        function ctn_rms_norm_at(at, x, n, weight, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: n
            type(ctn_tensor), value :: weight
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_loss.h: random numbers, a function of (seed, step, call, element), for any number of
    ! threads
    interface
        function ctn_dropout_at(at, x, rate) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: rate
            type(ctn_tensor) :: res
        end function
        function ctn_random_normal_at(at, ctx, mean, std, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            real(c_double), value :: mean
            real(c_double), value :: std
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
        function ctn_random_uniform_at(at, ctx, lo, hi, dtype, ndim, dims) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_context), value :: ctx
            real(c_double), value :: lo
            real(c_double), value :: hi
            integer(c_int), value :: dtype
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            type(ctn_tensor) :: res
        end function
        function ctn_gaussian_at(at, mean, ln_var) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: mean
            type(ctn_tensor), value :: ln_var
            type(ctn_tensor) :: res
        end function
        function ctn_gumbel_softmax_at(at, x, tau, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: tau
            integer(c_int), value :: axis
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: arithmetic
    interface
        function ctn_sub_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_mul_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_div_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_maximum_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_minimum_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_pow_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_power_at(at, x, p) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: p
            type(ctn_tensor) :: res
        end function
        function ctn_scale_at(at, x, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_shift_at(at, x, a) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: a
            type(ctn_tensor) :: res
        end function
        function ctn_clip_at(at, x, lo, hi) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: lo
            real(c_double), value :: hi
            type(ctn_tensor) :: res
        end function
        function ctn_neg_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_abs_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_sign_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_square_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_sqrt_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_rsqrt_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_exp_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_log_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: elementary functions; outside of the domain the result is NaN
    interface
        function ctn_sin_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_cos_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_tan_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arcsin_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arccos_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arctan_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arctan2_at(at, y, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: y
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_sinh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_cosh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arcsinh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arccosh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_arctanh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_expm1_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_log1p_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_log2_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_log10_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_floor_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_ceil_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_round_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_trunc_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_fmod_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_signed_power_at(at, x, p) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: p
            type(ctn_tensor) :: res
        end function
        function ctn_squared_difference_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_linear_interpolate_at(at, p, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: p
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: special functions
    interface
        function ctn_erf_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_erfc_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_erfcx_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_erfinv_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_erfcinv_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_ndtr_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_log_ndtr_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_ndtri_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_lgamma_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_digamma_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_polygamma_at(at, n, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            integer(c_int64_t), value :: n
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_zeta_at(at, x, q) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: q
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: activations
    interface
        function ctn_leaky_relu_at(at, x, slope) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: slope
            type(ctn_tensor) :: res
        end function
        function ctn_elu_at(at, x, alpha) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: alpha
            type(ctn_tensor) :: res
        end function
        function ctn_sigmoid_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_tanh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_softplus_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_gelu_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_gelu_tanh_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_swish_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_selu_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_hard_sigmoid_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_hard_swish_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_mish_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_crelu_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_maxout_at(at, x, pool, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: pool
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_rrelu_at(at, x, lower, upper) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: lower
            real(c_double), value :: upper
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: comparisons and choice
    interface
        function ctn_equal_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_not_equal_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_less_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_less_equal_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_greater_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_greater_equal_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_logical_and_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_logical_or_at(at, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
        function ctn_logical_not_at(at, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor) :: res
        end function
        function ctn_where_at(at, cond, a, b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: cond
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_math.h: types
    interface
        function ctn_cast_at(at, x, dtype) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: dtype
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_sequence.h: attention
    interface
        function ctn_attention_at(at, q, k, v, mask, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: q
            type(ctn_tensor), value :: k
            type(ctn_tensor), value :: v
            type(ctn_tensor), value :: mask
            type(ctn_attention_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_rotary_at(at, x, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_rotary_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_sequence.h: recurrent layers
    interface
        function ctn_lstm_at(at, x, w, opt, y, h, c) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_rnn_weights), intent(in) :: w
            type(ctn_rnn_opt), intent(in), optional :: opt
            type(ctn_tensor), intent(out), optional :: y
            type(ctn_tensor), intent(out), optional :: h
            type(ctn_tensor), intent(out), optional :: c
            integer(c_int) :: res
        end function
        function ctn_gru_at(at, x, w, opt, y, h) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_rnn_weights), intent(in) :: w
            type(ctn_rnn_opt), intent(in), optional :: opt
            type(ctn_tensor), intent(out), optional :: y
            type(ctn_tensor), intent(out), optional :: h
            integer(c_int) :: res
        end function
        function ctn_rnn_at(at, x, w, opt, y, h) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_rnn_weights), intent(in) :: w
            type(ctn_rnn_opt), intent(in), optional :: opt
            type(ctn_tensor), intent(out), optional :: y
            type(ctn_tensor), intent(out), optional :: h
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_sequence.h: cells of trees
    interface
        function ctn_tree_lstm_at(at, n, c, x, h, c_new) bind(C) result(res)
            import
            type(c_ptr), value :: at
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: c(*)
            type(ctn_tensor), value :: x
            type(ctn_tensor), intent(out), optional :: h
            type(ctn_tensor), intent(out), optional :: c_new
            integer(c_int) :: res
        end function
        function ctn_slstm_at(at, c1, c2, x1, x2, h, c_new) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: c1
            type(ctn_tensor), value :: c2
            type(ctn_tensor), value :: x1
            type(ctn_tensor), value :: x2
            type(ctn_tensor), intent(out), optional :: h
            type(ctn_tensor), intent(out), optional :: c_new
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_sequence.h: losses of sequences
    interface
        function ctn_ctc_loss_at(at, x, labels, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: labels
            type(ctn_ctc_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_crf_loss_at(at, cost, x, labels, opt) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: cost
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: labels
            type(ctn_crf_opt), intent(in), optional :: opt
            type(ctn_tensor) :: res
        end function
        function ctn_crf_decode_at(at, cost, x, lengths, path, score) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: cost
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: lengths
            type(ctn_tensor), intent(out), optional :: path
            type(ctn_tensor), intent(out), optional :: score
            integer(c_int) :: res
        end function
    end interface

    ! ---- ops_shape.h: reductions over axes; with keep = 1 the reduced axes stay, with length 1
    interface
        function ctn_mean_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_max_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_min_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_prod_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_logsumexp_at(at, x, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_variance_at(at, x, naxes, axes, correction, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: correction
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_std_at(at, x, naxes, axes, correction, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: correction
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_norm_at(at, x, p, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            real(c_double), value :: p
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
        function ctn_average_at(at, x, weights, naxes, axes, keep) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: weights
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            integer(c_int), value :: keep
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_shape.h: along one axis
    interface
        function ctn_argmax_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_argmin_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_topk_at(at, x, k, axis, values, indices) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: k
            integer(c_int64_t), value :: axis
            type(ctn_tensor), intent(out), optional :: values
            type(ctn_tensor), intent(out), optional :: indices
            integer(c_int) :: res
        end function
        function ctn_cumsum_at(at, x, axis, reverse) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: reverse
            type(ctn_tensor) :: res
        end function
        function ctn_sort_at(at, x, axis, descending, values, indices) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: descending
            type(ctn_tensor), intent(out), optional :: values
            type(ctn_tensor), intent(out), optional :: indices
            integer(c_int) :: res
        end function
        function ctn_argsort_at(at, x, axis, descending) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: descending
            type(ctn_tensor) :: res
        end function
        function ctn_cumprod_at(at, x, axis, reverse) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: reverse
            type(ctn_tensor) :: res
        end function
        function ctn_normalize_at(at, x, axis, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
        function ctn_cosine_similarity_at(at, a, b, axis, eps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            integer(c_int64_t), value :: axis
            real(c_double), value :: eps
            type(ctn_tensor) :: res
        end function
        function ctn_cross_covariance_at(at, x, y) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: y
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_shape.h: indexing
    interface
        function ctn_one_hot_at(at, index, classes, dtype) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: index
            integer(c_int64_t), value :: classes
            integer(c_int), value :: dtype
            type(ctn_tensor) :: res
        end function
        function ctn_gather_at(at, x, index, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_scatter_add_at(at, x, index, src, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            type(ctn_tensor), value :: src
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_embedding_at(at, table, index) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: table
            type(ctn_tensor), value :: index
            type(ctn_tensor) :: res
        end function
        function ctn_select_item_at(at, x, t) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: t
            type(ctn_tensor) :: res
        end function
        function ctn_permutate_at(at, x, index, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: index
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_masked_fill_at(at, x, mask, value) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: mask
            real(c_double), value :: value
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_shape.h: slicing and joining
    interface
        function ctn_concat_at(at, n, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: x(*)
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_stack_at(at, n, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: x(*)
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_split_at(at, x, axis, n, sizes, out) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: sizes(*)
            type(ctn_tensor), intent(inout) :: out(*)
            integer(c_int) :: res
        end function
        function ctn_slice_at(at, x, axis, start, length) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int64_t), value :: start
            integer(c_int64_t), value :: length
            type(ctn_tensor) :: res
        end function
        function ctn_slice_step_at(at, x, axis, start, length, stride) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int64_t), value :: start
            integer(c_int64_t), value :: length
            integer(c_int64_t), value :: stride
            type(ctn_tensor) :: res
        end function
        function ctn_as_strided_at(at, x, ndim, dims, strides, offset) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: ndim
            integer(c_int64_t), intent(in) :: dims(*)
            integer(c_int64_t), intent(in) :: strides(*)
            integer(c_int64_t), value :: offset
            type(ctn_tensor) :: res
        end function
        function ctn_select_at(at, x, axis, index) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int64_t), value :: index
            type(ctn_tensor) :: res
        end function
        function ctn_separate_at(at, x, axis, n, out) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int), value :: n
            type(ctn_tensor), intent(inout) :: out(*)
            integer(c_int) :: res
        end function
        function ctn_pad_at(at, x, before, after, value) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), intent(in), optional :: before(*)
            integer(c_int64_t), intent(in), optional :: after(*)
            real(c_double), value :: value
            type(ctn_tensor) :: res
        end function
        function ctn_pad_by_at(at, x, mode, before, after) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: mode
            integer(c_int64_t), intent(in), optional :: before(*)
            integer(c_int64_t), intent(in), optional :: after(*)
            type(ctn_tensor) :: res
        end function
        function ctn_tril_at(at, x, diagonal) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: diagonal
            type(ctn_tensor) :: res
        end function
        function ctn_put_rows_at(at, x, y, first) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            type(ctn_tensor), value :: y
            type(ctn_tensor), value :: first
            type(ctn_tensor) :: res
        end function
        function ctn_squeeze_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_unsqueeze_at(at, x, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_shape.h: rearranging
    interface
        function ctn_flip_at(at, x, naxes, axes) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes(*)
            type(ctn_tensor) :: res
        end function
        function ctn_roll_at(at, x, axis, shift) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: axis
            integer(c_int64_t), value :: shift
            type(ctn_tensor) :: res
        end function
        function ctn_repeat_at(at, x, n, axis) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: n
            integer(c_int64_t), value :: axis
            type(ctn_tensor) :: res
        end function
        function ctn_tile_at(at, x, n, reps) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int), value :: n
            integer(c_int64_t), intent(in) :: reps(*)
            type(ctn_tensor) :: res
        end function
        function ctn_moveaxis_at(at, x, from, to) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: from
            integer(c_int64_t), value :: to
            type(ctn_tensor) :: res
        end function
        function ctn_swapaxes_at(at, x, i, j) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: i
            integer(c_int64_t), value :: j
            type(ctn_tensor) :: res
        end function
        function ctn_diagonal_at(at, x, offset) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: offset
            type(ctn_tensor) :: res
        end function
        function ctn_diag_embed_at(at, x, offset) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: x
            integer(c_int64_t), value :: offset
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- ops_shape.h: products
    interface
        function ctn_einsum_at(at, equation, n, x) bind(C) result(res)
            import
            type(c_ptr), value :: at
            character(kind=c_char), intent(in) :: equation(*)
            integer(c_int), value :: n
            type(ctn_tensor), intent(in) :: x(*)
            type(ctn_tensor) :: res
        end function
        function ctn_tensordot_at(at, a, b, naxes, axes_a, axes_b) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_tensor), value :: a
            type(ctn_tensor), value :: b
            integer(c_int), value :: naxes
            integer(c_int64_t), intent(in) :: axes_a(*)
            integer(c_int64_t), intent(in) :: axes_b(*)
            type(ctn_tensor) :: res
        end function
    end interface

    ! ---- optim.h
    interface
        function ctn_sgd_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_sgd_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adam_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adam_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adamw_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adam_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_rmsprop_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_rmsprop_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adagrad_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adagrad_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adadelta_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adadelta_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adamax_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adamax_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_nadam_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_nadam_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_radam_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_radam_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lion_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_lion_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lamb_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_lamb_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lars_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_lars_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adabound_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adabound_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_smorms3_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_smorms3_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_msvag_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_msvag_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_adafactor_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_adafactor_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lbfgs_new(o, vars, opt) bind(C) result(res)
            import
            type(ctn_optim), intent(out) :: o
            type(ctn_vars), value :: vars
            type(ctn_lbfgs_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_lbfgs_step(o, closure, user, loss) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            type(c_funptr), value :: closure
            type(c_ptr), value :: user
            real(c_double), intent(out), optional :: loss
            integer(c_int) :: res
        end function
        subroutine ctn_optim_free(o) bind(C)
            import
            type(ctn_optim), value :: o
        end subroutine
        function ctn_backward_at(at, o, loss) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_optim), value :: o
            type(ctn_tensor), value :: loss
            integer(c_int) :: res
        end function
        function ctn_optim_step_at(at, o) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_optim), value :: o
            integer(c_int) :: res
        end function
        function ctn_optim_group(o, pattern, opt) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            character(kind=c_char), intent(in) :: pattern(*)
            type(ctn_group_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_optim_lr(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            real(c_double) :: res
        end function
        subroutine ctn_optim_set_lr(o, lr) bind(C)
            import
            type(ctn_optim), value :: o
            real(c_double), value :: lr
        end subroutine
        function ctn_optim_hyper(o, name) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            character(kind=c_char), intent(in) :: name(*)
            real(c_double) :: res
        end function
        function ctn_optim_set_hyper(o, name, value) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: value
            integer(c_int) :: res
        end function
        subroutine ctn_optim_set_clip(o, max) bind(C)
            import
            type(ctn_optim), value :: o
            real(c_double), value :: max
        end subroutine
        subroutine ctn_optim_set_clip_value(o, max) bind(C)
            import
            type(ctn_optim), value :: o
            real(c_double), value :: max
        end subroutine
        subroutine ctn_optim_set_lasso(o, rate) bind(C)
            import
            type(ctn_optim), value :: o
            real(c_double), value :: rate
        end subroutine
        subroutine ctn_optim_set_noise(o, eta, gamma, seed) bind(C)
            import
            type(ctn_optim), value :: o
            real(c_double), value :: eta
            real(c_double), value :: gamma
            integer(c_int64_t), value :: seed
        end subroutine
        subroutine ctn_optim_set_skip_nonfinite(o, on) bind(C)
            import
            type(ctn_optim), value :: o
            integer(c_int), value :: on
        end subroutine
        function ctn_optim_norm(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            real(c_double) :: res
        end function
        function ctn_optim_steps(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            integer(c_int64_t) :: res
        end function
        function ctn_optim_set_loss_scale(o, opt) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            type(ctn_loss_scale_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_optim_loss_scale(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            real(c_double) :: res
        end function
        function ctn_optim_skipped(o) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            integer(c_int64_t) :: res
        end function
        function ctn_sched_factor(s, step) bind(C) result(res)
            import
            type(ctn_sched_opt), intent(in) :: s
            integer(c_int64_t), value :: step
            real(c_double) :: res
        end function
        function ctn_optim_set_schedule(o, s) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            type(ctn_sched_opt), intent(in), optional :: s
            integer(c_int) :: res
        end function
        function ctn_optim_visit(o, fn, user) bind(C) result(res)
            import
            type(ctn_optim), value :: o
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
    end interface

    ! ---- tensor.h
    interface
        function ctn_dtype_size(t) bind(C) result(res)
            import
            integer(c_int), value :: t
            integer(c_size_t) :: res
        end function
        function ctn_dtype_name(t) bind(C) result(res)
            import
            integer(c_int), value :: t
            type(c_ptr) :: res
        end function
        function ctn_ndim(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            integer(c_int) :: res
        end function
        function ctn_dim(t, axis) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            integer(c_int), value :: axis
            integer(c_int64_t) :: res
        end function
        function ctn_count(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            integer(c_int64_t) :: res
        end function
        function ctn_dtype_of(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            integer(c_int) :: res
        end function
        function ctn_read(t, dst, bytes) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            type(*), intent(inout) :: dst(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: res
        end function
        function ctn_item(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            real(c_double) :: res
        end function
        function ctn_data(t) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            type(c_ptr) :: res
        end function
        function ctn_tensor_text(t, buf, n) bind(C) result(res)
            import
            type(ctn_tensor), value :: t
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_int) :: res
        end function
    end interface

    ! ---- text.h
    interface
        function ctn_tokenizer_open(t, path, opt) bind(C) result(res)
            import
            type(ctn_tokenizer), intent(out) :: t
            character(kind=c_char), intent(in) :: path(*)
            type(ctn_tokenizer_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        subroutine ctn_tokenizer_free(t) bind(C)
            import
            type(ctn_tokenizer), value :: t
        end subroutine
        function ctn_tokenizer_encode(t, text, bytes, ids, room) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: bytes
            integer(c_int32_t), intent(out) :: ids(*)
            integer(c_size_t), value :: room
            integer(c_int64_t) :: res
        end function
        function ctn_tokenizer_decode(t, ids, n, text, room) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int32_t), intent(in) :: ids(*)
            integer(c_size_t), value :: n
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: room
            integer(c_int64_t) :: res
        end function
        function ctn_tokenizer_decode_next(t, state, id, text, room) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            type(ctn_decode_state), intent(inout) :: state
            integer(c_int32_t), value :: id
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: room
            integer(c_int64_t) :: res
        end function
        function ctn_tokenizer_tokens(t) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int64_t) :: res
        end function
        function ctn_tokenizer_token(t, id, bytes) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int64_t), value :: id
            integer(c_size_t), intent(out), optional :: bytes
            type(c_ptr) :: res
        end function
        function ctn_tokenizer_id(t, text, bytes) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            character(kind=c_char), intent(in) :: text(*)
            integer(c_size_t), value :: bytes
            integer(c_int32_t) :: res
        end function
        function ctn_tokenizer_special(t, id) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int64_t), value :: id
            integer(c_int) :: res
        end function
        function ctn_tokenizer_end(t) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int32_t) :: res
        end function
        function ctn_tokenizer_around(t, after, ids, room) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int), value :: after
            integer(c_int32_t), intent(out) :: ids
            integer(c_int), value :: room
            integer(c_int) :: res
        end function
        function ctn_tokenizer_chat(t, messages, bytes, opt, text, room) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            character(kind=c_char), intent(in) :: messages(*)
            integer(c_size_t), value :: bytes
            type(ctn_chat_opt), intent(in), optional :: opt
            character(kind=c_char), intent(out) :: text(*)
            integer(c_size_t), value :: room
            integer(c_int64_t) :: res
        end function
        function ctn_tokens_pack(t, files, path, out, tokens, opt) bind(C) result(res)
            import
            type(ctn_tokenizer), value :: t
            integer(c_int), value :: files
            type(c_ptr), intent(in) :: path(*)
            character(kind=c_char), intent(in) :: out(*)
            integer(c_int64_t), intent(out), optional :: tokens
            type(ctn_tokens_pack_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- train.h: one batch
    interface
        function ctn_step_context(s) bind(C) result(res)
            import
            type(ctn_step), value :: s
            type(ctn_context) :: res
        end function
        function ctn_step_batch(s) bind(C) result(res)
            import
            type(ctn_step), value :: s
            type(c_ptr) :: res
        end function
        function ctn_step_input_at(at, s, f) bind(C) result(res)
            import
            type(c_ptr), value :: at
            type(ctn_step), value :: s
            integer(c_int), value :: f
            type(ctn_tensor) :: res
        end function
        function ctn_report(s, name, value) bind(C) result(res)
            import
            type(ctn_step), value :: s
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_tensor), value :: value
            integer(c_int) :: res
        end function
        function ctn_report_ratio(s, name, above, below) bind(C) result(res)
            import
            type(ctn_step), value :: s
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_tensor), value :: above
            type(ctn_tensor), value :: below
            integer(c_int) :: res
        end function
        function ctn_report_weight(s, weight) bind(C) result(res)
            import
            type(ctn_step), value :: s
            real(c_double), value :: weight
            integer(c_int) :: res
        end function
        function ctn_report_targets(s, f, ignore) bind(C) result(res)
            import
            type(ctn_step), value :: s
            integer(c_int), value :: f
            integer(c_int64_t), value :: ignore
            integer(c_int) :: res
        end function
        function ctn_report_metric(s, name, metric, y, t) bind(C) result(res)
            import
            type(ctn_step), value :: s
            character(kind=c_char), intent(in) :: name(*)
            character(kind=c_char), intent(in), optional :: metric(*)
            type(ctn_tensor), value :: y
            type(ctn_tensor), value :: t
            integer(c_int) :: res
        end function
        function ctn_metric_names() bind(C) result(res)
            import
            type(c_ptr) :: res
        end function
    end interface

    ! ---- train.h: the loop
    interface
        function ctn_trainer_new(tr, opt, loader, loss, self, o) bind(C) result(res)
            import
            type(ctn_trainer), intent(out) :: tr
            type(ctn_optim), value :: opt
            type(ctn_loader), value :: loader
            type(c_funptr), value :: loss
            type(c_ptr), value :: self
            type(ctn_trainer_opt), intent(in), optional :: o
            integer(c_int) :: res
        end function
        function ctn_trainer_add_optim(tr, name, opt, loss, self) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_optim), value :: opt
            type(c_funptr), value :: loss
            type(c_ptr), value :: self
            integer(c_int) :: res
        end function
        subroutine ctn_trainer_free(tr) bind(C)
            import
            type(ctn_trainer), value :: tr
        end subroutine
        function ctn_trainer_run(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int) :: res
        end function
        subroutine ctn_trainer_stop(tr, why) bind(C)
            import
            type(ctn_trainer), value :: tr
            type(c_ptr), value :: why
        end subroutine
        function ctn_trainer_stopped(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(c_ptr) :: res
        end function
        subroutine ctn_trainer_progress(tr, out) bind(C)
            import
            type(ctn_trainer), value :: tr
            type(ctn_progress), intent(out) :: out
        end subroutine
        function ctn_trainer_optim(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_optim) :: res
        end function
        function ctn_trainer_loader(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_loader) :: res
        end function
        function ctn_trainer_net(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_module) :: res
        end function
        function ctn_trainer_out(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(c_ptr) :: res
        end function
        function ctn_trainer_context(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_context) :: res
        end function
    end interface

    ! ---- train.h: observed values
    interface
        function ctn_trainer_observe(tr, name, value) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), value :: value
            integer(c_int) :: res
        end function
        function ctn_trainer_value(tr, name, value) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: name(*)
            real(c_double), intent(out) :: value
            integer(c_int) :: res
        end function
        function ctn_trainer_name(tr, i) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int), value :: i
            type(c_ptr) :: res
        end function
        function ctn_trainer_rows(tr) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int64_t) :: res
        end function
        function ctn_trainer_row_value(tr, row, name) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int64_t), value :: row
            character(kind=c_char), intent(in) :: name(*)
            real(c_double) :: res
        end function
        subroutine ctn_trainer_row_progress(tr, row, out) bind(C)
            import
            type(ctn_trainer), value :: tr
            integer(c_int64_t), value :: row
            type(ctn_progress), intent(out) :: out
        end subroutine
    end interface

    ! ---- train.h: extensions
    interface
        function ctn_trainer_extend(tr, e) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_extension), intent(in) :: e
            integer(c_int) :: res
        end function
        function ctn_extend_evaluator(tr, when, loader, loss, self) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(ctn_loader), value :: loader
            type(c_funptr), value :: loss
            type(c_ptr), value :: self
            integer(c_int) :: res
        end function
        function ctn_evaluate(ctx, loader, loss, self, fn, user) bind(C) result(res)
            import
            type(ctn_context), value :: ctx
            type(ctn_loader), value :: loader
            type(c_funptr), value :: loss
            type(c_ptr), value :: self
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_extend_log(tr, when, file) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in), optional :: file(*)
            integer(c_int) :: res
        end function
        function ctn_extend_progress(tr, when, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(ctn_show_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_print(tr, when, names, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(c_ptr), intent(in), optional :: names(*)
            type(ctn_show_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_plot(tr, when, names, file) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(c_ptr), intent(in) :: names(*)
            character(kind=c_char), intent(in) :: file(*)
            integer(c_int) :: res
        end function
        function ctn_extend_tensorboard(tr, when, dir) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int) :: res
        end function
        function ctn_extend_html(tr, when, file, title, facts) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in) :: file(*)
            character(kind=c_char), intent(in) :: title(*)
            type(c_ptr), intent(in) :: facts(*)
            integer(c_int) :: res
        end function
        function ctn_extend_schedule(tr, hyper, s) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: hyper(*)
            type(ctn_sched_opt), intent(in) :: s
            integer(c_int) :: res
        end function
        function ctn_extend_plateau(tr, when, hyper, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in) :: hyper(*)
            type(ctn_patience_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_early_stop(tr, when, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(ctn_patience_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_observe(tr, when, name, value, self) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr), value :: value
            type(c_ptr), value :: self
            integer(c_int) :: res
        end function
        function ctn_extend_param_stats(tr, when, pattern) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in), optional :: pattern(*)
            integer(c_int) :: res
        end function
        function ctn_extend_param_plot(tr, when, pattern, file) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in) :: pattern(*)
            character(kind=c_char), intent(in) :: file(*)
            integer(c_int) :: res
        end function
        function ctn_extend_fail_on_nonfinite(tr, when) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            integer(c_int) :: res
        end function
        function ctn_extend_on_nonfinite(tr, when, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            type(ctn_nonfinite_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_spikes(tr, opt) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_spike_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_extend_unfreeze(tr, epoch, pattern, statistics) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int64_t), value :: epoch
            character(kind=c_char), intent(in), optional :: pattern(*)
            integer(c_int), value :: statistics
            integer(c_int) :: res
        end function
        function ctn_extend_average(tr, rate) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            real(c_double), value :: rate
            integer(c_int) :: res
        end function
        function ctn_extend_swa(tr, start, every) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            integer(c_int64_t), value :: start
            integer(c_int64_t), value :: every
            integer(c_int) :: res
        end function
        function ctn_extend_weights(tr, when, file) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            character(kind=c_char), intent(in), optional :: file(*)
            integer(c_int) :: res
        end function
        function ctn_extend_replicas(tr, when) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            integer(c_int) :: res
        end function
        function ctn_extend_state(tr, when) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in), optional :: when
            integer(c_int) :: res
        end function
    end interface

    ! ---- train.h: save and resume
    interface
        function ctn_trainer_save(tr, dir) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int) :: res
        end function
        function ctn_trainer_load(tr, dir) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int) :: res
        end function
        function ctn_memory_new(out) bind(C) result(res)
            import
            type(ctn_memory), intent(out) :: out
            integer(c_int) :: res
        end function
        subroutine ctn_memory_free(m) bind(C)
            import
            type(ctn_memory), value :: m
        end subroutine
        function ctn_extend_memory(tr, when, m) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_trigger), intent(in) :: when
            type(ctn_memory), value :: m
            integer(c_int) :: res
        end function
        function ctn_trainer_recall(tr, m) bind(C) result(res)
            import
            type(ctn_trainer), value :: tr
            type(ctn_memory), value :: m
            integer(c_int) :: res
        end function
    end interface

    ! ---- train.h: looking at saved states
    interface
        function ctn_states_visit(dir, fn, user) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: dir(*)
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_state_verify(path, fn, user) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_state_arrays(path, fn, user) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_states_prune(dir, keep) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: dir(*)
            integer(c_int64_t), value :: keep
            integer(c_int) :: res
        end function
        function ctn_state_export(path, file) bind(C) result(res)
            import
            character(kind=c_char), intent(in) :: path(*)
            character(kind=c_char), intent(in) :: file(*)
            integer(c_int) :: res
        end function
    end interface

    ! ---- tune.h
    interface
        function ctn_tune_folder(buf, n) bind(C) result(res)
            import
            character(kind=c_char), intent(out) :: buf(*)
            integer(c_size_t), value :: n
            integer(c_int) :: res
        end function
        function ctn_tune_visit(fn, user) bind(C) result(res)
            import
            type(c_funptr), value :: fn
            type(c_ptr), value :: user
            integer(c_int) :: res
        end function
        function ctn_tune_clear(files) bind(C) result(res)
            import
            integer(c_int64_t), intent(out), optional :: files
            integer(c_int) :: res
        end function
    end interface

    ! ---- zoo.h: by name
    interface
        function ctn_zoo_new(m, ctx, name, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(in) :: name(*)
            type(ctn_zoo_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_names() bind(C) result(res)
            import
            type(c_ptr) :: res
        end function
    end interface

    ! ---- zoo.h: by family
    interface
        function ctn_zoo_mlp(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_mlp_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_lenet5(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_lenet5_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_resnet(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_resnet_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_resnet_cifar(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_resnet_cifar_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_mobilenet_v2(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_mobilenet_v2_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_vgg(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_vgg_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_googlenet(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_googlenet_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_unet(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_unet_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_fno(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_fno_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_gpt(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_gpt_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_llama(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_llama_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_bert(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_bert_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_vit(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_vit_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_seq2seq(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_seq2seq_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_gcn(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_gcn_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_gat(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_gat_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
        function ctn_zoo_meshgraphnet(m, ctx, opt) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            type(ctn_meshgraphnet_opt), intent(in), optional :: opt
            integer(c_int) :: res
        end function
    end interface

    ! ---- zoo.h: published models
    interface
        function ctn_zoo_open(m, ctx, path) bind(C) result(res)
            import
            type(ctn_module), intent(out) :: m
            type(ctn_context), value :: ctx
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int) :: res
        end function
    end interface
end module

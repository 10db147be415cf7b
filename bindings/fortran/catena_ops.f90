! SPDX-License-Identifier: Apache-2.0
!
! The ops as functions of tensors, and operators.
! dev/interface writes this file from the public headers.
module catena_ops
    use, intrinsic :: iso_c_binding
    use catena_base
    use catena_types
    use catena_objects
    use catena_c, only: c_apply => ctn_apply_at, c_matmul => ctn_matmul_at, c_linear => &
        ctn_linear_at, c_add => ctn_add_at, c_relu => ctn_relu_at, c_sum => ctn_sum_at, c_reshape &
        => ctn_reshape_at, c_transpose => ctn_transpose_at, c_broadcast_to => ctn_broadcast_to_at, &
        c_full => ctn_full_at, c_softmax_cross_entropy_with => ctn_softmax_cross_entropy_with_at, &
        c_linear_cross_entropy => ctn_linear_cross_entropy_at, c_conv => ctn_conv_at, &
        c_conv_transpose => ctn_conv_transpose_at, c_max_pool => ctn_max_pool_at, c_avg_pool => &
        ctn_avg_pool_at, c_global_avg_pool => ctn_global_avg_pool_at, c_adaptive_avg_pool => &
        ctn_adaptive_avg_pool_at, c_batch_norm => ctn_batch_norm_at, c_channel_affine => &
        ctn_channel_affine_at, c_group_norm => ctn_group_norm_at, c_instance_norm => &
        ctn_instance_norm_at, c_resize => ctn_resize_at, c_depth_to_space => &
        ctn_depth_to_space_at, c_space_to_depth => ctn_space_to_depth_at, c_prelu => ctn_prelu_at, &
        c_spatial_dropout => ctn_spatial_dropout_at, c_softmax => ctn_softmax_at, c_log_softmax => &
        ctn_log_softmax_at, c_sigmoid_cross_entropy => ctn_sigmoid_cross_entropy_at, &
        c_mean_squared_error => ctn_mean_squared_error_at, c_mean_absolute_error => &
        ctn_mean_absolute_error_at, c_huber => ctn_huber_at, c_accuracy => ctn_accuracy_at, &
        c_confusion_matrix => ctn_confusion_matrix_at, c_layer_norm => ctn_layer_norm_at, &
        c_rms_norm => ctn_rms_norm_at, c_dropout => ctn_dropout_at, c_random_normal => &
        ctn_random_normal_at, c_random_uniform => ctn_random_uniform_at, c_sub => ctn_sub_at, &
        c_mul => ctn_mul_at, c_div => ctn_div_at, c_maximum => ctn_maximum_at, c_minimum => &
        ctn_minimum_at, c_pow => ctn_pow_at, c_power => ctn_power_at, c_scale => ctn_scale_at, &
        c_shift => ctn_shift_at, c_clip => ctn_clip_at, c_neg => ctn_neg_at, c_abs => ctn_abs_at, &
        c_sign => ctn_sign_at, c_square => ctn_square_at, c_sqrt => ctn_sqrt_at, c_rsqrt => &
        ctn_rsqrt_at, c_exp => ctn_exp_at, c_log => ctn_log_at, c_leaky_relu => ctn_leaky_relu_at, &
        c_elu => ctn_elu_at, c_sigmoid => ctn_sigmoid_at, c_tanh => ctn_tanh_at, c_softplus => &
        ctn_softplus_at, c_gelu => ctn_gelu_at, c_gelu_tanh => ctn_gelu_tanh_at, c_swish => &
        ctn_swish_at, c_equal => ctn_equal_at, c_not_equal => ctn_not_equal_at, c_less => &
        ctn_less_at, c_less_equal => ctn_less_equal_at, c_greater => ctn_greater_at, &
        c_greater_equal => ctn_greater_equal_at, c_logical_and => ctn_logical_and_at, c_logical_or &
        => ctn_logical_or_at, c_logical_not => ctn_logical_not_at, c_where => ctn_where_at, c_cast &
        => ctn_cast_at, c_attention => ctn_attention_at, c_rotary => ctn_rotary_at, c_lstm => &
        ctn_lstm_at, c_gru => ctn_gru_at, c_rnn => ctn_rnn_at, c_mean => ctn_mean_at, c_max => &
        ctn_max_at, c_min => ctn_min_at, c_argmax => ctn_argmax_at, c_topk => ctn_topk_at, &
        c_cumsum => ctn_cumsum_at, c_one_hot => ctn_one_hot_at, c_gather => ctn_gather_at, &
        c_scatter_add => ctn_scatter_add_at, c_embedding => ctn_embedding_at, c_concat => &
        ctn_concat_at, c_stack => ctn_stack_at, c_split => ctn_split_at, c_slice => ctn_slice_at, &
        c_pad => ctn_pad_at, c_tril => ctn_tril_at, c_put_rows => ctn_put_rows_at, c_squeeze => &
        ctn_squeeze_at, c_unsqueeze => ctn_unsqueeze_at, c_context => ctn_context, c_var => ctn_var
    implicit none
    private
    public :: ctn_apply, ctn_matmul, ctn_linear, ctn_add, ctn_relu, ctn_sum, ctn_reshape, &
        ctn_transpose, ctn_broadcast_to, ctn_full, ctn_softmax_cross_entropy, &
        ctn_linear_cross_entropy, ctn_conv, ctn_conv_transpose, ctn_max_pool, ctn_avg_pool, &
        ctn_global_avg_pool, ctn_adaptive_avg_pool, ctn_batch_norm, ctn_channel_affine, &
        ctn_group_norm, ctn_instance_norm, ctn_resize, ctn_depth_to_space, ctn_space_to_depth, &
        ctn_prelu, ctn_spatial_dropout, ctn_softmax, ctn_log_softmax, ctn_sigmoid_cross_entropy, &
        ctn_mean_squared_error, ctn_mean_absolute_error, ctn_huber, ctn_accuracy, &
        ctn_confusion_matrix, ctn_layer_norm, ctn_rms_norm, ctn_dropout, ctn_random_normal, &
        ctn_random_uniform, ctn_sub, ctn_mul, ctn_div, ctn_maximum, ctn_minimum, ctn_pow, &
        ctn_power, ctn_scale, ctn_shift, ctn_clip, ctn_neg, ctn_abs, ctn_sign, ctn_square, &
        ctn_sqrt, ctn_rsqrt, ctn_exp, ctn_log, ctn_leaky_relu, ctn_elu, ctn_sigmoid, ctn_tanh, &
        ctn_softplus, ctn_gelu, ctn_gelu_tanh, ctn_swish, ctn_equal, ctn_not_equal, ctn_less, &
        ctn_less_equal, ctn_greater, ctn_greater_equal, ctn_logical_and, ctn_logical_or, &
        ctn_logical_not, ctn_where, ctn_cast, ctn_attention, ctn_rotary, ctn_lstm, ctn_gru, &
        ctn_rnn, ctn_mean, ctn_max, ctn_min, ctn_argmax, ctn_topk, ctn_cumsum, ctn_one_hot, &
        ctn_gather, ctn_scatter_add, ctn_embedding, ctn_concat, ctn_stack, ctn_split, ctn_slice, &
        ctn_pad, ctn_tril, ctn_put_rows, ctn_squeeze, ctn_unsqueeze, operator(+), operator(-), &
        operator(*), operator(/)

    interface ctn_apply
        module procedure f_apply
    end interface
    interface ctn_matmul
        module procedure f_matmul
    end interface
    interface ctn_linear
        module procedure f_linear
    end interface
    interface ctn_add
        module procedure f_add
    end interface
    interface ctn_relu
        module procedure f_relu
    end interface
    interface ctn_sum
        module procedure f_sum
    end interface
    interface ctn_reshape
        module procedure f_reshape
    end interface
    interface ctn_transpose
        module procedure f_transpose
    end interface
    interface ctn_broadcast_to
        module procedure f_broadcast_to
    end interface
    interface ctn_full
        module procedure f_full
    end interface
    interface ctn_softmax_cross_entropy
        module procedure f_softmax_cross_entropy
    end interface
    interface ctn_linear_cross_entropy
        module procedure f_linear_cross_entropy
    end interface
    interface ctn_conv
        module procedure f_conv
    end interface
    interface ctn_conv_transpose
        module procedure f_conv_transpose
    end interface
    interface ctn_max_pool
        module procedure f_max_pool
    end interface
    interface ctn_avg_pool
        module procedure f_avg_pool
    end interface
    interface ctn_global_avg_pool
        module procedure f_global_avg_pool
    end interface
    interface ctn_adaptive_avg_pool
        module procedure f_adaptive_avg_pool
    end interface
    interface ctn_batch_norm
        module procedure f_batch_norm
    end interface
    interface ctn_channel_affine
        module procedure f_channel_affine
    end interface
    interface ctn_group_norm
        module procedure f_group_norm
    end interface
    interface ctn_instance_norm
        module procedure f_instance_norm
    end interface
    interface ctn_resize
        module procedure f_resize
    end interface
    interface ctn_depth_to_space
        module procedure f_depth_to_space
    end interface
    interface ctn_space_to_depth
        module procedure f_space_to_depth
    end interface
    interface ctn_prelu
        module procedure f_prelu
    end interface
    interface ctn_spatial_dropout
        module procedure f_spatial_dropout
    end interface
    interface ctn_softmax
        module procedure f_softmax
    end interface
    interface ctn_log_softmax
        module procedure f_log_softmax
    end interface
    interface ctn_sigmoid_cross_entropy
        module procedure f_sigmoid_cross_entropy
    end interface
    interface ctn_mean_squared_error
        module procedure f_mean_squared_error
    end interface
    interface ctn_mean_absolute_error
        module procedure f_mean_absolute_error
    end interface
    interface ctn_huber
        module procedure f_huber
    end interface
    interface ctn_accuracy
        module procedure f_accuracy
    end interface
    interface ctn_confusion_matrix
        module procedure f_confusion_matrix
    end interface
    interface ctn_layer_norm
        module procedure f_layer_norm
    end interface
    interface ctn_rms_norm
        module procedure f_rms_norm
    end interface
    interface ctn_dropout
        module procedure f_dropout
    end interface
    interface ctn_random_normal
        module procedure f_random_normal
    end interface
    interface ctn_random_uniform
        module procedure f_random_uniform
    end interface
    interface ctn_sub
        module procedure f_sub
    end interface
    interface ctn_mul
        module procedure f_mul
    end interface
    interface ctn_div
        module procedure f_div
    end interface
    interface ctn_maximum
        module procedure f_maximum
    end interface
    interface ctn_minimum
        module procedure f_minimum
    end interface
    interface ctn_pow
        module procedure f_pow
    end interface
    interface ctn_power
        module procedure f_power
    end interface
    interface ctn_scale
        module procedure f_scale
    end interface
    interface ctn_shift
        module procedure f_shift
    end interface
    interface ctn_clip
        module procedure f_clip
    end interface
    interface ctn_neg
        module procedure f_neg
    end interface
    interface ctn_abs
        module procedure f_abs
    end interface
    interface ctn_sign
        module procedure f_sign
    end interface
    interface ctn_square
        module procedure f_square
    end interface
    interface ctn_sqrt
        module procedure f_sqrt
    end interface
    interface ctn_rsqrt
        module procedure f_rsqrt
    end interface
    interface ctn_exp
        module procedure f_exp
    end interface
    interface ctn_log
        module procedure f_log
    end interface
    interface ctn_leaky_relu
        module procedure f_leaky_relu
    end interface
    interface ctn_elu
        module procedure f_elu
    end interface
    interface ctn_sigmoid
        module procedure f_sigmoid
    end interface
    interface ctn_tanh
        module procedure f_tanh
    end interface
    interface ctn_softplus
        module procedure f_softplus
    end interface
    interface ctn_gelu
        module procedure f_gelu
    end interface
    interface ctn_gelu_tanh
        module procedure f_gelu_tanh
    end interface
    interface ctn_swish
        module procedure f_swish
    end interface
    interface ctn_equal
        module procedure f_equal
    end interface
    interface ctn_not_equal
        module procedure f_not_equal
    end interface
    interface ctn_less
        module procedure f_less
    end interface
    interface ctn_less_equal
        module procedure f_less_equal
    end interface
    interface ctn_greater
        module procedure f_greater
    end interface
    interface ctn_greater_equal
        module procedure f_greater_equal
    end interface
    interface ctn_logical_and
        module procedure f_logical_and
    end interface
    interface ctn_logical_or
        module procedure f_logical_or
    end interface
    interface ctn_logical_not
        module procedure f_logical_not
    end interface
    interface ctn_where
        module procedure f_where
    end interface
    interface ctn_cast
        module procedure f_cast
    end interface
    interface ctn_attention
        module procedure f_attention
    end interface
    interface ctn_rotary
        module procedure f_rotary
    end interface
    interface ctn_lstm
        module procedure f_lstm
    end interface
    interface ctn_gru
        module procedure f_gru
    end interface
    interface ctn_rnn
        module procedure f_rnn
    end interface
    interface ctn_mean
        module procedure f_mean
    end interface
    interface ctn_max
        module procedure f_max
    end interface
    interface ctn_min
        module procedure f_min
    end interface
    interface ctn_argmax
        module procedure f_argmax
    end interface
    interface ctn_topk
        module procedure f_topk
    end interface
    interface ctn_cumsum
        module procedure f_cumsum
    end interface
    interface ctn_one_hot
        module procedure f_one_hot
    end interface
    interface ctn_gather
        module procedure f_gather
    end interface
    interface ctn_scatter_add
        module procedure f_scatter_add
    end interface
    interface ctn_embedding
        module procedure f_embedding
    end interface
    interface ctn_concat
        module procedure f_concat
    end interface
    interface ctn_stack
        module procedure f_stack
    end interface
    interface ctn_split
        module procedure f_split
    end interface
    interface ctn_slice
        module procedure f_slice
    end interface
    interface ctn_pad
        module procedure f_pad
    end interface
    interface ctn_tril
        module procedure f_tril
    end interface
    interface ctn_put_rows
        module procedure f_put_rows
    end interface
    interface ctn_squeeze
        module procedure f_squeeze
    end interface
    interface ctn_unsqueeze
        module procedure f_unsqueeze
    end interface

    interface operator(+)
        module procedure operator_add, left_add, right_add
    end interface
    interface operator(-)
        module procedure operator_sub, left_sub, right_sub, operator_neg
    end interface
    interface operator(*)
        module procedure operator_mul, left_mul, right_mul
    end interface
    interface operator(/)
        module procedure operator_div, left_div, right_div
    end interface

contains

    recursive subroutine f_apply(op, in, args, out, ctx, stat, errmsg)
        type(ctn_op), intent(inout) :: op
        type(ctn_tensor), intent(in) :: in(:)
        type(ctn_op_args), intent(in) :: args
        type(ctn_tensor), intent(inout) :: out(:)
        type(ctn_context), intent(in), optional :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_context) :: ctx_
        integer(c_int) :: st_
        if (present(ctx)) ctx_ = c_context(address_of(ctx))
        st_ = c_apply(c_loc(here), ctx_, op, ubound(in, 1, kind=c_int), in, args, out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_matmul(a, b, trans_a, trans_b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(in), optional :: trans_a
        integer, intent(in), optional :: trans_b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: trans_a_
        integer(c_int) :: trans_b_
        trans_a_ = 0
        if (present(trans_a)) trans_a_ = trans_a
        trans_b_ = 0
        if (present(trans_b)) trans_b_ = trans_b
        res = c_matmul(c_loc(here), a, b, trans_a_, trans_b_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_linear(x, w, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        if (present(b)) b_ = b
        res = c_linear(c_loc(here), x, w, b_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_add(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_add(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_relu(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_relu(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sum(x, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: axes(:)
        integer, intent(in), optional :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: axes_(:)
        integer(c_int) :: keep_
        call set_integers(axes_, axes)
        if (.not. allocated(axes_)) allocate (axes_(0))
        keep_ = 0
        if (present(keep)) keep_ = keep
        res = c_sum(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_reshape(x, dims, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_reshape(c_loc(here), x, ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_transpose(x, axes, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_transpose(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_broadcast_to(x, dims, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_broadcast_to(c_loc(here), x, ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_full(ctx, value, dtype, dims, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in) :: value
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_full(c_loc(here), c_context(address_of(ctx)), value, dtype, ubound(dims, 1, &
                kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_softmax_cross_entropy(x, t, weights, reduction, ignore, smoothing, bias, &
                stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        type(ctn_tensor), intent(in), optional :: weights
        integer(c_int), intent(in), optional :: reduction
        integer, intent(in), optional :: ignore
        real(c_double), intent(in), optional :: smoothing
        type(ctn_tensor), intent(in), optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_softmax_cross_entropy_opt) :: opt_
        integer(c_int64_t), allocatable, target :: ignore_
        if (present(weights)) opt_%weights = weights
        if (present(reduction)) opt_%reduction = reduction
        if (present(ignore)) then
            allocate (ignore_, source=int(ignore, c_int64_t))
            opt_%ignore = c_loc(ignore_)
        end if
        if (present(smoothing)) opt_%smoothing = smoothing
        if (present(bias)) opt_%bias = bias
        res = c_softmax_cross_entropy_with(c_loc(here), x, t, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_linear_cross_entropy(x, w, t, weights, reduction, ignore, smoothing, &
                bias, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in) :: t
        type(ctn_tensor), intent(in), optional :: weights
        integer(c_int), intent(in), optional :: reduction
        integer, intent(in), optional :: ignore
        real(c_double), intent(in), optional :: smoothing
        type(ctn_tensor), intent(in), optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_softmax_cross_entropy_opt) :: opt_
        integer(c_int64_t), allocatable, target :: ignore_
        if (present(weights)) opt_%weights = weights
        if (present(reduction)) opt_%reduction = reduction
        if (present(ignore)) then
            allocate (ignore_, source=int(ignore, c_int64_t))
            opt_%ignore = c_loc(ignore_)
        end if
        if (present(smoothing)) opt_%smoothing = smoothing
        if (present(bias)) opt_%bias = bias
        res = c_linear_cross_entropy(c_loc(here), x, w, t, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_conv(x, w, b, stride, pad, pad_end, dilation, groups, out_pad, stat, &
                errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_conv_opt) :: opt_
        if (present(b)) b_ = b
        if (present(stride)) opt_%stride(:ubound(stride, 1)) = stride
        if (present(pad)) opt_%pad(:ubound(pad, 1)) = pad
        if (present(pad_end)) opt_%pad_end(:ubound(pad_end, 1)) = pad_end
        if (present(dilation)) opt_%dilation(:ubound(dilation, 1)) = dilation
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) opt_%out_pad(:ubound(out_pad, 1)) = out_pad
        res = c_conv(c_loc(here), x, w, b_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_conv_transpose(x, w, b, stride, pad, pad_end, dilation, groups, out_pad, &
                stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_conv_opt) :: opt_
        if (present(b)) b_ = b
        if (present(stride)) opt_%stride(:ubound(stride, 1)) = stride
        if (present(pad)) opt_%pad(:ubound(pad, 1)) = pad
        if (present(pad_end)) opt_%pad_end(:ubound(pad_end, 1)) = pad_end
        if (present(dilation)) opt_%dilation(:ubound(dilation, 1)) = dilation
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) opt_%out_pad(:ubound(out_pad, 1)) = out_pad
        res = c_conv_transpose(c_loc(here), x, w, b_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_max_pool(x, kernel, stride, pad, ceil, exclude_pad, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_pool_opt) :: opt_
        if (present(kernel)) opt_%kernel(:ubound(kernel, 1)) = kernel
        if (present(stride)) opt_%stride(:ubound(stride, 1)) = stride
        if (present(pad)) opt_%pad(:ubound(pad, 1)) = pad
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        res = c_max_pool(c_loc(here), x, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_avg_pool(x, kernel, stride, pad, ceil, exclude_pad, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_pool_opt) :: opt_
        if (present(kernel)) opt_%kernel(:ubound(kernel, 1)) = kernel
        if (present(stride)) opt_%stride(:ubound(stride, 1)) = stride
        if (present(pad)) opt_%pad(:ubound(pad, 1)) = pad
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        res = c_avg_pool(c_loc(here), x, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_global_avg_pool(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_global_avg_pool(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_adaptive_avg_pool(x, size, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: size(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_adaptive_avg_pool(c_loc(here), x, ubound(size, 1, kind=c_int), int(size, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_batch_norm(x, mean, var, scale, shift, eps, momentum, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_var), intent(in) :: mean
        type(ctn_var), intent(in) :: var
        type(ctn_tensor), intent(in), optional :: scale
        type(ctn_tensor), intent(in), optional :: shift
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: scale_
        type(ctn_tensor) :: shift_
        type(ctn_batch_norm_opt) :: opt_
        if (present(scale)) scale_ = scale
        if (present(shift)) shift_ = shift
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        res = c_batch_norm(c_loc(here), x, scale_, shift_, c_var(address_of(mean)), &
                c_var(address_of(var)), opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_channel_affine(x, a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        if (present(b)) b_ = b
        res = c_channel_affine(c_loc(here), x, a, b_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_group_norm(x, groups, eps, scale, shift, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: groups
        real(c_double), intent(in) :: eps
        type(ctn_tensor), intent(in), optional :: scale
        type(ctn_tensor), intent(in), optional :: shift
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: scale_
        type(ctn_tensor) :: shift_
        if (present(scale)) scale_ = scale
        if (present(shift)) shift_ = shift
        res = c_group_norm(c_loc(here), x, int(groups, c_int64_t), scale_, shift_, eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_instance_norm(x, eps, scale, shift, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: eps
        type(ctn_tensor), intent(in), optional :: scale
        type(ctn_tensor), intent(in), optional :: shift
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: scale_
        type(ctn_tensor) :: shift_
        if (present(scale)) scale_ = scale
        if (present(shift)) shift_ = shift
        res = c_instance_norm(c_loc(here), x, scale_, shift_, eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_resize(x, kind, size, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer(c_int), intent(in) :: kind
        integer, intent(in) :: size(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_resize(c_loc(here), x, kind, ubound(size, 1, kind=c_int), int(size, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_depth_to_space(x, r, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: r
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_depth_to_space(c_loc(here), x, int(r, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_space_to_depth(x, r, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: r
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_space_to_depth(c_loc(here), x, int(r, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_prelu(x, slope, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: slope
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_prelu(c_loc(here), x, slope)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_spatial_dropout(x, rate, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: rate
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_spatial_dropout(c_loc(here), x, rate)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_softmax(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_softmax(c_loc(here), x, int(axis, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log_softmax(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log_softmax(c_loc(here), x, int(axis, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sigmoid_cross_entropy(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_sigmoid_cross_entropy(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_mean_squared_error(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_mean_squared_error(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_mean_absolute_error(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_mean_absolute_error(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_huber(x, t, delta, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(in) :: delta
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_huber(c_loc(here), x, t, delta, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_accuracy(x, t, k, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(in) :: k
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_accuracy(c_loc(here), x, t, int(k, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_confusion_matrix(pred, t, C, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: pred
        type(ctn_tensor), intent(in) :: t
        integer, intent(in) :: C
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_confusion_matrix(c_loc(here), pred, t, int(C, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_layer_norm(x, n, eps, weight, bias, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: n
        real(c_double), intent(in) :: eps
        type(ctn_tensor), intent(in), optional :: weight
        type(ctn_tensor), intent(in), optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: weight_
        type(ctn_tensor) :: bias_
        if (present(weight)) weight_ = weight
        if (present(bias)) bias_ = bias
        res = c_layer_norm(c_loc(here), x, int(n, c_int), weight_, bias_, eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_rms_norm(x, n, eps, weight, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: n
        real(c_double), intent(in) :: eps
        type(ctn_tensor), intent(in), optional :: weight
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: weight_
        if (present(weight)) weight_ = weight
        res = c_rms_norm(c_loc(here), x, int(n, c_int), weight_, eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dropout(x, rate, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: rate
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dropout(c_loc(here), x, rate)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_random_normal(ctx, mean, std, dtype, dims, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in) :: mean
        real(c_double), intent(in) :: std
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_random_normal(c_loc(here), c_context(address_of(ctx)), mean, std, dtype, &
                ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_random_uniform(ctx, lo, hi, dtype, dims, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in) :: lo
        real(c_double), intent(in) :: hi
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_random_uniform(c_loc(here), c_context(address_of(ctx)), lo, hi, dtype, &
                ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sub(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sub(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_mul(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_mul(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_div(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_div(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_maximum(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_maximum(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_minimum(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_minimum(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_pow(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_pow(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_power(x, p, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: p
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_power(c_loc(here), x, p)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_scale(x, a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_scale(c_loc(here), x, a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_shift(x, a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_shift(c_loc(here), x, a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_clip(x, lo, hi, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: lo
        real(c_double), intent(in) :: hi
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_clip(c_loc(here), x, lo, hi)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_neg(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_neg(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_abs(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_abs(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sign(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sign(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_square(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_square(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sqrt(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sqrt(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_rsqrt(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_rsqrt(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_exp(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_exp(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_leaky_relu(x, slope, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: slope
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_leaky_relu(c_loc(here), x, slope)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_elu(x, alpha, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: alpha
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_elu(c_loc(here), x, alpha)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sigmoid(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sigmoid(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_tanh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_tanh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_softplus(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_softplus(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gelu(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_gelu(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gelu_tanh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_gelu_tanh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_swish(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_swish(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_equal(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_equal(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_not_equal(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_not_equal(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_less(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_less(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_less_equal(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_less_equal(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_greater(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_greater(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_greater_equal(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_greater_equal(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_logical_and(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_logical_and(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_logical_or(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_logical_or(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_logical_not(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_logical_not(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_where(cond, a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: cond
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_where(c_loc(here), cond, a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cast(x, dtype, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer(c_int), intent(in) :: dtype
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cast(c_loc(here), x, dtype)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_attention(q, k, v, mask, scale, causal, window, dropout, lengths, first, &
                composed, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: q
        type(ctn_tensor), intent(in) :: k
        type(ctn_tensor), intent(in) :: v
        type(ctn_tensor), intent(in), optional :: mask
        real(c_double), intent(in), optional :: scale
        integer, intent(in), optional :: causal
        integer, intent(in), optional :: window
        real(c_double), intent(in), optional :: dropout
        type(ctn_tensor), intent(in), optional :: lengths
        type(ctn_tensor), intent(in), optional :: first
        integer, intent(in), optional :: composed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: mask_
        type(ctn_attention_opt) :: opt_
        if (present(mask)) mask_ = mask
        if (present(scale)) opt_%scale = scale
        if (present(causal)) opt_%causal = causal
        if (present(window)) opt_%window = window
        if (present(dropout)) opt_%dropout = dropout
        if (present(lengths)) opt_%lengths = lengths
        if (present(first)) opt_%first = first
        if (present(composed)) opt_%composed = composed
        res = c_attention(c_loc(here), q, k, v, mask_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_rotary(x, base, first, dims, interleaved, positions, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in), optional :: base
        real(c_double), intent(in), optional :: first
        integer, intent(in), optional :: dims
        integer, intent(in), optional :: interleaved
        type(ctn_tensor), intent(in), optional :: positions
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_rotary_opt) :: opt_
        if (present(base)) opt_%base = base
        if (present(first)) opt_%first = first
        if (present(dims)) opt_%dims = dims
        if (present(interleaved)) opt_%interleaved = interleaved
        if (present(positions)) opt_%positions = positions
        res = c_rotary(c_loc(here), x, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_lstm(x, w, h0, c0, lengths, reverse, relu, composed, y, h, c, stat, &
                errmsg)
        type(ctn_tensor), intent(in) :: x
        type(ctn_rnn_weights), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: h0
        type(ctn_tensor), intent(in), optional :: c0
        type(ctn_tensor), intent(in), optional :: lengths
        integer, intent(in), optional :: reverse
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        type(ctn_tensor), intent(out), optional :: y
        type(ctn_tensor), intent(out), optional :: h
        type(ctn_tensor), intent(out), optional :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_rnn_opt) :: opt_
        integer(c_int) :: st_
        if (present(h0)) opt_%h0 = h0
        if (present(c0)) opt_%c0 = c0
        if (present(lengths)) opt_%lengths = lengths
        if (present(reverse)) opt_%reverse = reverse
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_lstm(c_loc(here), x, w, opt_, y, h, c)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_gru(x, w, h0, c0, lengths, reverse, relu, composed, y, h, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        type(ctn_rnn_weights), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: h0
        type(ctn_tensor), intent(in), optional :: c0
        type(ctn_tensor), intent(in), optional :: lengths
        integer, intent(in), optional :: reverse
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        type(ctn_tensor), intent(out), optional :: y
        type(ctn_tensor), intent(out), optional :: h
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_rnn_opt) :: opt_
        integer(c_int) :: st_
        if (present(h0)) opt_%h0 = h0
        if (present(c0)) opt_%c0 = c0
        if (present(lengths)) opt_%lengths = lengths
        if (present(reverse)) opt_%reverse = reverse
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_gru(c_loc(here), x, w, opt_, y, h)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_rnn(x, w, h0, c0, lengths, reverse, relu, composed, y, h, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        type(ctn_rnn_weights), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: h0
        type(ctn_tensor), intent(in), optional :: c0
        type(ctn_tensor), intent(in), optional :: lengths
        integer, intent(in), optional :: reverse
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        type(ctn_tensor), intent(out), optional :: y
        type(ctn_tensor), intent(out), optional :: h
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_rnn_opt) :: opt_
        integer(c_int) :: st_
        if (present(h0)) opt_%h0 = h0
        if (present(c0)) opt_%c0 = c0
        if (present(lengths)) opt_%lengths = lengths
        if (present(reverse)) opt_%reverse = reverse
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_rnn(c_loc(here), x, w, opt_, y, h)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_mean(x, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: axes(:)
        integer, intent(in), optional :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: axes_(:)
        integer(c_int) :: keep_
        call set_integers(axes_, axes)
        if (.not. allocated(axes_)) allocate (axes_(0))
        keep_ = 0
        if (present(keep)) keep_ = keep
        res = c_mean(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_max(x, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: axes(:)
        integer, intent(in), optional :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: axes_(:)
        integer(c_int) :: keep_
        call set_integers(axes_, axes)
        if (.not. allocated(axes_)) allocate (axes_(0))
        keep_ = 0
        if (present(keep)) keep_ = keep
        res = c_max(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_min(x, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: axes(:)
        integer, intent(in), optional :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: axes_(:)
        integer(c_int) :: keep_
        call set_integers(axes_, axes)
        if (.not. allocated(axes_)) allocate (axes_(0))
        keep_ = 0
        if (present(keep)) keep_ = keep
        res = c_min(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_argmax(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_argmax(c_loc(here), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_topk(x, k, axis, values, indices, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: k
        integer, intent(in) :: axis
        type(ctn_tensor), intent(out), optional :: values
        type(ctn_tensor), intent(out), optional :: indices
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_topk(c_loc(here), x, int(k, c_int64_t), int(axis, c_int64_t), values, indices)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_cumsum(x, axis, reverse, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in), optional :: reverse
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reverse_
        reverse_ = 0
        if (present(reverse)) reverse_ = reverse
        res = c_cumsum(c_loc(here), x, int(axis, c_int64_t), reverse_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_one_hot(index, classes, dtype, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: index
        integer, intent(in) :: classes
        integer(c_int), intent(in) :: dtype
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_one_hot(c_loc(here), index, int(classes, c_int64_t), dtype)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gather(x, index, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_gather(c_loc(here), x, index, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_scatter_add(x, index, src, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        type(ctn_tensor), intent(in) :: src
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_scatter_add(c_loc(here), x, index, src, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_embedding(table, index, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: table
        type(ctn_tensor), intent(in) :: index
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_embedding(c_loc(here), table, index)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_concat(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x(:)
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_concat(c_loc(here), ubound(x, 1, kind=c_int), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_stack(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x(:)
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_stack(c_loc(here), ubound(x, 1, kind=c_int), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_split(x, axis, sizes, out, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: sizes(:)
        type(ctn_tensor), intent(inout) :: out(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_split(c_loc(here), x, int(axis, c_int64_t), ubound(sizes, 1, kind=c_int), &
                int(sizes, c_int64_t), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_slice(x, axis, start, length, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: start
        integer, intent(in) :: length
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_slice(c_loc(here), x, int(axis, c_int64_t), int(start, c_int64_t), int(length, &
                c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_pad(x, value, before, after, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: value
        integer, intent(in), optional :: before(:)
        integer, intent(in), optional :: after(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: before_(:)
        integer(c_int64_t), allocatable :: after_(:)
        call set_integers(before_, before)
        call set_integers(after_, after)
        res = c_pad(c_loc(here), x, before_, after_, value)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_tril(x, diagonal, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: diagonal
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_tril(c_loc(here), x, int(diagonal, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_put_rows(x, y, first, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: y
        type(ctn_tensor), intent(in) :: first
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_put_rows(c_loc(here), x, y, first)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_squeeze(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_squeeze(c_loc(here), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_unsqueeze(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_unsqueeze(c_loc(here), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    function operator_add(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_add(x, a)
    end function

    function left_add(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_shift(x, a)
    end function

    function right_add(a, x) result(res)
        real(c_double), intent(in) :: a
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: res
        res = f_shift(x, a)
    end function

    function operator_sub(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_sub(x, a)
    end function

    function left_sub(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_shift(x, -a)
    end function

    function right_sub(a, x) result(res)
        real(c_double), intent(in) :: a
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: res
        res = f_shift(f_neg(x), a)
    end function

    function operator_mul(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_mul(x, a)
    end function

    function left_mul(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_scale(x, a)
    end function

    function right_mul(a, x) result(res)
        real(c_double), intent(in) :: a
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: res
        res = f_scale(x, a)
    end function

    function operator_div(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_div(x, a)
    end function

    function left_div(x, a) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: a
        type(ctn_tensor) :: res
        res = f_scale(x, 1 / a)
    end function

    function right_div(a, x) result(res)
        real(c_double), intent(in) :: a
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: res
        res = f_scale(f_power(x, -1.0_c_double), a)
    end function

    function operator_neg(x) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor) :: res
        res = f_neg(x)
    end function
end module

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
        c_linear_cross_entropy => ctn_linear_cross_entropy_at, c_fft => ctn_fft_at, c_ifft => &
        ctn_ifft_at, c_rfft => ctn_rfft_at, c_irfft => ctn_irfft_at, c_complex_mul => &
        ctn_complex_mul_at, c_index_select => ctn_index_select_at, c_index_add => &
        ctn_index_add_at, c_scatter => ctn_scatter_at, c_segment_sum => ctn_segment_sum_at, &
        c_segment_mean => ctn_segment_mean_at, c_segment_max => ctn_segment_max_at, &
        c_segment_softmax => ctn_segment_softmax_at, c_group_ids => ctn_group_ids_at, c_spmm => &
        ctn_spmm_at, c_conv => ctn_conv_at, c_conv_transpose => ctn_conv_transpose_at, c_im2col => &
        ctn_im2col_at, c_local_conv => ctn_local_conv_at, c_deform_conv => ctn_deform_conv_at, &
        c_max_pool => ctn_max_pool_at, c_max_pool_places => ctn_max_pool_places_at, c_max_unpool &
        => ctn_max_unpool_at, c_avg_pool => ctn_avg_pool_at, c_global_avg_pool => &
        ctn_global_avg_pool_at, c_adaptive_avg_pool => ctn_adaptive_avg_pool_at, &
        c_spatial_pyramid_pool => ctn_spatial_pyramid_pool_at, c_roi_align => ctn_roi_align_at, &
        c_roi_pool => ctn_roi_pool_at, c_batch_norm => ctn_batch_norm_at, &
        c_decorrelated_batch_norm => ctn_decorrelated_batch_norm_at, &
        c_fixed_decorrelated_batch_norm => ctn_fixed_decorrelated_batch_norm_at, c_batch_renorm => &
        ctn_batch_renorm_at, c_channel_affine => ctn_channel_affine_at, c_group_norm => &
        ctn_group_norm_at, c_instance_norm => ctn_instance_norm_at, c_local_response_norm => &
        ctn_local_response_norm_at, c_resize => ctn_resize_at, c_grid_sample => &
        ctn_grid_sample_at, c_affine_grid => ctn_affine_grid_at, c_depth_to_space => &
        ctn_depth_to_space_at, c_space_to_depth => ctn_space_to_depth_at, c_prelu => ctn_prelu_at, &
        c_spatial_dropout => ctn_spatial_dropout_at, c_cholesky => ctn_cholesky_at, &
        c_solve_triangular => ctn_solve_triangular_at, c_solve => ctn_solve_at, c_inverse => &
        ctn_inverse_at, c_det => ctn_det_at, c_slogdet => ctn_slogdet_at, c_inverse_sqrt => &
        ctn_inverse_sqrt_at, c_lyapunov => ctn_lyapunov_at, c_softmax => ctn_softmax_at, &
        c_log_softmax => ctn_log_softmax_at, c_sigmoid_cross_entropy => &
        ctn_sigmoid_cross_entropy_at, c_mean_squared_error => ctn_mean_squared_error_at, &
        c_mean_absolute_error => ctn_mean_absolute_error_at, c_huber => ctn_huber_at, &
        c_bernoulli_nll => ctn_bernoulli_nll_at, c_poisson_nll => ctn_poisson_nll_at, &
        c_gaussian_nll => ctn_gaussian_nll_at, c_gaussian_kl_divergence => &
        ctn_gaussian_kl_divergence_at, c_kl_div => ctn_kl_div_at, c_hinge => ctn_hinge_at, &
        c_contrastive => ctn_contrastive_at, c_triplet => ctn_triplet_at, c_decov => ctn_decov_at, &
        c_discriminative_margin_based_clustering_loss => &
        ctn_discriminative_margin_based_clustering_loss_at, c_accuracy => ctn_accuracy_at, &
        c_confusion_matrix => ctn_confusion_matrix_at, c_binary_accuracy => &
        ctn_binary_accuracy_at, c_r2_score => ctn_r2_score_at, c_classification_summary => &
        ctn_classification_summary_at, c_layer_norm => ctn_layer_norm_at, c_rms_norm => &
        ctn_rms_norm_at, c_dropout => ctn_dropout_at, c_random_normal => ctn_random_normal_at, &
        c_random_uniform => ctn_random_uniform_at, c_gaussian => ctn_gaussian_at, c_gumbel_softmax &
        => ctn_gumbel_softmax_at, c_sub => ctn_sub_at, c_mul => ctn_mul_at, c_div => ctn_div_at, &
        c_maximum => ctn_maximum_at, c_minimum => ctn_minimum_at, c_pow => ctn_pow_at, c_power => &
        ctn_power_at, c_scale => ctn_scale_at, c_shift => ctn_shift_at, c_clip => ctn_clip_at, &
        c_neg => ctn_neg_at, c_abs => ctn_abs_at, c_sign => ctn_sign_at, c_square => &
        ctn_square_at, c_sqrt => ctn_sqrt_at, c_rsqrt => ctn_rsqrt_at, c_exp => ctn_exp_at, c_log &
        => ctn_log_at, c_sin => ctn_sin_at, c_cos => ctn_cos_at, c_tan => ctn_tan_at, c_arcsin => &
        ctn_arcsin_at, c_arccos => ctn_arccos_at, c_arctan => ctn_arctan_at, c_arctan2 => &
        ctn_arctan2_at, c_sinh => ctn_sinh_at, c_cosh => ctn_cosh_at, c_arcsinh => ctn_arcsinh_at, &
        c_arccosh => ctn_arccosh_at, c_arctanh => ctn_arctanh_at, c_expm1 => ctn_expm1_at, c_log1p &
        => ctn_log1p_at, c_log2 => ctn_log2_at, c_log10 => ctn_log10_at, c_floor => ctn_floor_at, &
        c_ceil => ctn_ceil_at, c_round => ctn_round_at, c_trunc => ctn_trunc_at, c_fmod => &
        ctn_fmod_at, c_signed_power => ctn_signed_power_at, c_squared_difference => &
        ctn_squared_difference_at, c_linear_interpolate => ctn_linear_interpolate_at, c_erf => &
        ctn_erf_at, c_erfc => ctn_erfc_at, c_erfcx => ctn_erfcx_at, c_erfinv => ctn_erfinv_at, &
        c_erfcinv => ctn_erfcinv_at, c_ndtr => ctn_ndtr_at, c_log_ndtr => ctn_log_ndtr_at, c_ndtri &
        => ctn_ndtri_at, c_lgamma => ctn_lgamma_at, c_digamma => ctn_digamma_at, c_polygamma => &
        ctn_polygamma_at, c_zeta => ctn_zeta_at, c_leaky_relu => ctn_leaky_relu_at, c_elu => &
        ctn_elu_at, c_sigmoid => ctn_sigmoid_at, c_tanh => ctn_tanh_at, c_softplus => &
        ctn_softplus_at, c_gelu => ctn_gelu_at, c_gelu_tanh => ctn_gelu_tanh_at, c_swish => &
        ctn_swish_at, c_selu => ctn_selu_at, c_hard_sigmoid => ctn_hard_sigmoid_at, c_hard_swish &
        => ctn_hard_swish_at, c_mish => ctn_mish_at, c_crelu => ctn_crelu_at, c_maxout => &
        ctn_maxout_at, c_rrelu => ctn_rrelu_at, c_equal => ctn_equal_at, c_not_equal => &
        ctn_not_equal_at, c_less => ctn_less_at, c_less_equal => ctn_less_equal_at, c_greater => &
        ctn_greater_at, c_greater_equal => ctn_greater_equal_at, c_logical_and => &
        ctn_logical_and_at, c_logical_or => ctn_logical_or_at, c_logical_not => &
        ctn_logical_not_at, c_where => ctn_where_at, c_cast => ctn_cast_at, c_attention => &
        ctn_attention_at, c_rotary => ctn_rotary_at, c_lstm => ctn_lstm_at, c_gru => ctn_gru_at, &
        c_rnn => ctn_rnn_at, c_tree_lstm => ctn_tree_lstm_at, c_slstm => ctn_slstm_at, c_ctc_loss &
        => ctn_ctc_loss_at, c_crf_loss => ctn_crf_loss_at, c_crf_decode => ctn_crf_decode_at, &
        c_mean => ctn_mean_at, c_max => ctn_max_at, c_min => ctn_min_at, c_prod => ctn_prod_at, &
        c_logsumexp => ctn_logsumexp_at, c_variance => ctn_variance_at, c_std => ctn_std_at, &
        c_norm => ctn_norm_at, c_average => ctn_average_at, c_argmax => ctn_argmax_at, c_argmin => &
        ctn_argmin_at, c_topk => ctn_topk_at, c_cumsum => ctn_cumsum_at, c_sort => ctn_sort_at, &
        c_argsort => ctn_argsort_at, c_cumprod => ctn_cumprod_at, c_normalize => ctn_normalize_at, &
        c_cosine_similarity => ctn_cosine_similarity_at, c_cross_covariance => &
        ctn_cross_covariance_at, c_one_hot => ctn_one_hot_at, c_gather => ctn_gather_at, &
        c_scatter_add => ctn_scatter_add_at, c_embedding => ctn_embedding_at, c_select_item => &
        ctn_select_item_at, c_permutate => ctn_permutate_at, c_masked_fill => ctn_masked_fill_at, &
        c_concat => ctn_concat_at, c_stack => ctn_stack_at, c_split => ctn_split_at, c_slice => &
        ctn_slice_at, c_slice_step => ctn_slice_step_at, c_as_strided => ctn_as_strided_at, &
        c_select => ctn_select_at, c_separate => ctn_separate_at, c_pad => ctn_pad_at, c_pad_by => &
        ctn_pad_by_at, c_tril => ctn_tril_at, c_put_rows => ctn_put_rows_at, c_squeeze => &
        ctn_squeeze_at, c_unsqueeze => ctn_unsqueeze_at, c_flip => ctn_flip_at, c_roll => &
        ctn_roll_at, c_repeat => ctn_repeat_at, c_tile => ctn_tile_at, c_moveaxis => &
        ctn_moveaxis_at, c_swapaxes => ctn_swapaxes_at, c_diagonal => ctn_diagonal_at, &
        c_diag_embed => ctn_diag_embed_at, c_einsum => ctn_einsum_at, c_tensordot => &
        ctn_tensordot_at, c_ndim => ctn_ndim, c_context => ctn_context, c_var => ctn_var
    implicit none
    private
    public :: ctn_apply, ctn_matmul, ctn_linear, ctn_add, ctn_relu, ctn_sum, ctn_reshape, &
        ctn_transpose, ctn_broadcast_to, ctn_full, ctn_softmax_cross_entropy, &
        ctn_linear_cross_entropy, ctn_fft, ctn_ifft, ctn_rfft, ctn_irfft, ctn_complex_mul, &
        ctn_index_select, ctn_index_add, ctn_scatter, ctn_segment_sum, ctn_segment_mean, &
        ctn_segment_max, ctn_segment_softmax, ctn_group_ids, ctn_spmm, ctn_conv, &
        ctn_conv_transpose, ctn_im2col, ctn_local_conv, ctn_deform_conv, ctn_max_pool, &
        ctn_max_pool_places, ctn_max_unpool, ctn_avg_pool, ctn_global_avg_pool, &
        ctn_adaptive_avg_pool, ctn_spatial_pyramid_pool, ctn_roi_align, ctn_roi_pool, &
        ctn_batch_norm, ctn_decorrelated_batch_norm, ctn_fixed_decorrelated_batch_norm, &
        ctn_batch_renorm, ctn_channel_affine, ctn_group_norm, ctn_instance_norm, &
        ctn_local_response_norm, ctn_resize, ctn_grid_sample, ctn_affine_grid, ctn_depth_to_space, &
        ctn_space_to_depth, ctn_prelu, ctn_spatial_dropout, ctn_cholesky, ctn_solve_triangular, &
        ctn_solve, ctn_inverse, ctn_det, ctn_slogdet, ctn_inverse_sqrt, ctn_lyapunov, ctn_softmax, &
        ctn_log_softmax, ctn_sigmoid_cross_entropy, ctn_mean_squared_error, &
        ctn_mean_absolute_error, ctn_huber, ctn_bernoulli_nll, ctn_poisson_nll, ctn_gaussian_nll, &
        ctn_gaussian_kl_divergence, ctn_kl_div, ctn_hinge, ctn_contrastive, ctn_triplet, &
        ctn_decov, ctn_discriminative_margin_based_clustering_loss, ctn_accuracy, &
        ctn_confusion_matrix, ctn_binary_accuracy, ctn_r2_score, ctn_classification_summary, &
        ctn_layer_norm, ctn_rms_norm, ctn_dropout, ctn_random_normal, ctn_random_uniform, &
        ctn_gaussian, ctn_gumbel_softmax, ctn_sub, ctn_mul, ctn_div, ctn_maximum, ctn_minimum, &
        ctn_pow, ctn_power, ctn_scale, ctn_shift, ctn_clip, ctn_neg, ctn_abs, ctn_sign, &
        ctn_square, ctn_sqrt, ctn_rsqrt, ctn_exp, ctn_log, ctn_sin, ctn_cos, ctn_tan, ctn_arcsin, &
        ctn_arccos, ctn_arctan, ctn_arctan2, ctn_sinh, ctn_cosh, ctn_arcsinh, ctn_arccosh, &
        ctn_arctanh, ctn_expm1, ctn_log1p, ctn_log2, ctn_log10, ctn_floor, ctn_ceil, ctn_round, &
        ctn_trunc, ctn_fmod, ctn_signed_power, ctn_squared_difference, ctn_linear_interpolate, &
        ctn_erf, ctn_erfc, ctn_erfcx, ctn_erfinv, ctn_erfcinv, ctn_ndtr, ctn_log_ndtr, ctn_ndtri, &
        ctn_lgamma, ctn_digamma, ctn_polygamma, ctn_zeta, ctn_leaky_relu, ctn_elu, ctn_sigmoid, &
        ctn_tanh, ctn_softplus, ctn_gelu, ctn_gelu_tanh, ctn_swish, ctn_selu, ctn_hard_sigmoid, &
        ctn_hard_swish, ctn_mish, ctn_crelu, ctn_maxout, ctn_rrelu, ctn_equal, ctn_not_equal, &
        ctn_less, ctn_less_equal, ctn_greater, ctn_greater_equal, ctn_logical_and, ctn_logical_or, &
        ctn_logical_not, ctn_where, ctn_cast, ctn_attention, ctn_rotary, ctn_lstm, ctn_gru, &
        ctn_rnn, ctn_tree_lstm, ctn_slstm, ctn_ctc_loss, ctn_crf_loss, ctn_crf_decode, ctn_mean, &
        ctn_max, ctn_min, ctn_prod, ctn_logsumexp, ctn_variance, ctn_std, ctn_norm, ctn_average, &
        ctn_argmax, ctn_argmin, ctn_topk, ctn_cumsum, ctn_sort, ctn_argsort, ctn_cumprod, &
        ctn_normalize, ctn_cosine_similarity, ctn_cross_covariance, ctn_one_hot, ctn_gather, &
        ctn_scatter_add, ctn_embedding, ctn_select_item, ctn_permutate, ctn_masked_fill, &
        ctn_concat, ctn_stack, ctn_split, ctn_slice, ctn_slice_step, ctn_as_strided, ctn_select, &
        ctn_separate, ctn_pad, ctn_pad_by, ctn_tril, ctn_put_rows, ctn_squeeze, ctn_unsqueeze, &
        ctn_flip, ctn_roll, ctn_repeat, ctn_tile, ctn_moveaxis, ctn_swapaxes, ctn_diagonal, &
        ctn_diag_embed, ctn_einsum, ctn_tensordot, operator(+), operator(-), operator(*), &
        operator(/)

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
    interface ctn_fft
        module procedure f_fft
    end interface
    interface ctn_ifft
        module procedure f_ifft
    end interface
    interface ctn_rfft
        module procedure f_rfft
    end interface
    interface ctn_irfft
        module procedure f_irfft
    end interface
    interface ctn_complex_mul
        module procedure f_complex_mul
    end interface
    interface ctn_index_select
        module procedure f_index_select
    end interface
    interface ctn_index_add
        module procedure f_index_add
    end interface
    interface ctn_scatter
        module procedure f_scatter
    end interface
    interface ctn_segment_sum
        module procedure f_segment_sum
    end interface
    interface ctn_segment_mean
        module procedure f_segment_mean
    end interface
    interface ctn_segment_max
        module procedure f_segment_max
    end interface
    interface ctn_segment_softmax
        module procedure f_segment_softmax
    end interface
    interface ctn_group_ids
        module procedure f_group_ids
    end interface
    interface ctn_spmm
        module procedure f_spmm
    end interface
    interface ctn_conv
        module procedure f_conv
    end interface
    interface ctn_conv_transpose
        module procedure f_conv_transpose
    end interface
    interface ctn_im2col
        module procedure f_im2col
    end interface
    interface ctn_local_conv
        module procedure f_local_conv
    end interface
    interface ctn_deform_conv
        module procedure f_deform_conv
    end interface
    interface ctn_max_pool
        module procedure f_max_pool
    end interface
    interface ctn_max_pool_places
        module procedure f_max_pool_places
    end interface
    interface ctn_max_unpool
        module procedure f_max_unpool
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
    interface ctn_spatial_pyramid_pool
        module procedure f_spatial_pyramid_pool
    end interface
    interface ctn_roi_align
        module procedure f_roi_align
    end interface
    interface ctn_roi_pool
        module procedure f_roi_pool
    end interface
    interface ctn_batch_norm
        module procedure f_batch_norm
    end interface
    interface ctn_decorrelated_batch_norm
        module procedure f_decorrelated_batch_norm
    end interface
    interface ctn_fixed_decorrelated_batch_norm
        module procedure f_fixed_decorrelated_batch_norm
    end interface
    interface ctn_batch_renorm
        module procedure f_batch_renorm
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
    interface ctn_local_response_norm
        module procedure f_local_response_norm
    end interface
    interface ctn_resize
        module procedure f_resize
    end interface
    interface ctn_grid_sample
        module procedure f_grid_sample
    end interface
    interface ctn_affine_grid
        module procedure f_affine_grid
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
    interface ctn_cholesky
        module procedure f_cholesky
    end interface
    interface ctn_solve_triangular
        module procedure f_solve_triangular
    end interface
    interface ctn_solve
        module procedure f_solve
    end interface
    interface ctn_inverse
        module procedure f_inverse
    end interface
    interface ctn_det
        module procedure f_det
    end interface
    interface ctn_slogdet
        module procedure f_slogdet
    end interface
    interface ctn_inverse_sqrt
        module procedure f_inverse_sqrt
    end interface
    interface ctn_lyapunov
        module procedure f_lyapunov
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
    interface ctn_bernoulli_nll
        module procedure f_bernoulli_nll
    end interface
    interface ctn_poisson_nll
        module procedure f_poisson_nll
    end interface
    interface ctn_gaussian_nll
        module procedure f_gaussian_nll
    end interface
    interface ctn_gaussian_kl_divergence
        module procedure f_gaussian_kl_divergence
    end interface
    interface ctn_kl_div
        module procedure f_kl_div
    end interface
    interface ctn_hinge
        module procedure f_hinge
    end interface
    interface ctn_contrastive
        module procedure f_contrastive
    end interface
    interface ctn_triplet
        module procedure f_triplet
    end interface
    interface ctn_decov
        module procedure f_decov
    end interface
    interface ctn_discriminative_margin_based_clustering_loss
        module procedure f_discriminative_margin_based_clustering_loss
    end interface
    interface ctn_accuracy
        module procedure f_accuracy
    end interface
    interface ctn_confusion_matrix
        module procedure f_confusion_matrix
    end interface
    interface ctn_binary_accuracy
        module procedure f_binary_accuracy
    end interface
    interface ctn_r2_score
        module procedure f_r2_score
    end interface
    interface ctn_classification_summary
        module procedure f_classification_summary
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
    interface ctn_gaussian
        module procedure f_gaussian
    end interface
    interface ctn_gumbel_softmax
        module procedure f_gumbel_softmax
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
    interface ctn_sin
        module procedure f_sin
    end interface
    interface ctn_cos
        module procedure f_cos
    end interface
    interface ctn_tan
        module procedure f_tan
    end interface
    interface ctn_arcsin
        module procedure f_arcsin
    end interface
    interface ctn_arccos
        module procedure f_arccos
    end interface
    interface ctn_arctan
        module procedure f_arctan
    end interface
    interface ctn_arctan2
        module procedure f_arctan2
    end interface
    interface ctn_sinh
        module procedure f_sinh
    end interface
    interface ctn_cosh
        module procedure f_cosh
    end interface
    interface ctn_arcsinh
        module procedure f_arcsinh
    end interface
    interface ctn_arccosh
        module procedure f_arccosh
    end interface
    interface ctn_arctanh
        module procedure f_arctanh
    end interface
    interface ctn_expm1
        module procedure f_expm1
    end interface
    interface ctn_log1p
        module procedure f_log1p
    end interface
    interface ctn_log2
        module procedure f_log2
    end interface
    interface ctn_log10
        module procedure f_log10
    end interface
    interface ctn_floor
        module procedure f_floor
    end interface
    interface ctn_ceil
        module procedure f_ceil
    end interface
    interface ctn_round
        module procedure f_round
    end interface
    interface ctn_trunc
        module procedure f_trunc
    end interface
    interface ctn_fmod
        module procedure f_fmod
    end interface
    interface ctn_signed_power
        module procedure f_signed_power
    end interface
    interface ctn_squared_difference
        module procedure f_squared_difference
    end interface
    interface ctn_linear_interpolate
        module procedure f_linear_interpolate
    end interface
    interface ctn_erf
        module procedure f_erf
    end interface
    interface ctn_erfc
        module procedure f_erfc
    end interface
    interface ctn_erfcx
        module procedure f_erfcx
    end interface
    interface ctn_erfinv
        module procedure f_erfinv
    end interface
    interface ctn_erfcinv
        module procedure f_erfcinv
    end interface
    interface ctn_ndtr
        module procedure f_ndtr
    end interface
    interface ctn_log_ndtr
        module procedure f_log_ndtr
    end interface
    interface ctn_ndtri
        module procedure f_ndtri
    end interface
    interface ctn_lgamma
        module procedure f_lgamma
    end interface
    interface ctn_digamma
        module procedure f_digamma
    end interface
    interface ctn_polygamma
        module procedure f_polygamma
    end interface
    interface ctn_zeta
        module procedure f_zeta
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
    interface ctn_selu
        module procedure f_selu
    end interface
    interface ctn_hard_sigmoid
        module procedure f_hard_sigmoid
    end interface
    interface ctn_hard_swish
        module procedure f_hard_swish
    end interface
    interface ctn_mish
        module procedure f_mish
    end interface
    interface ctn_crelu
        module procedure f_crelu
    end interface
    interface ctn_maxout
        module procedure f_maxout
    end interface
    interface ctn_rrelu
        module procedure f_rrelu
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
    interface ctn_tree_lstm
        module procedure f_tree_lstm
    end interface
    interface ctn_slstm
        module procedure f_slstm
    end interface
    interface ctn_ctc_loss
        module procedure f_ctc_loss
    end interface
    interface ctn_crf_loss
        module procedure f_crf_loss
    end interface
    interface ctn_crf_decode
        module procedure f_crf_decode
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
    interface ctn_prod
        module procedure f_prod
    end interface
    interface ctn_logsumexp
        module procedure f_logsumexp
    end interface
    interface ctn_variance
        module procedure f_variance
    end interface
    interface ctn_std
        module procedure f_std
    end interface
    interface ctn_norm
        module procedure f_norm
    end interface
    interface ctn_average
        module procedure f_average
    end interface
    interface ctn_argmax
        module procedure f_argmax
    end interface
    interface ctn_argmin
        module procedure f_argmin
    end interface
    interface ctn_topk
        module procedure f_topk
    end interface
    interface ctn_cumsum
        module procedure f_cumsum
    end interface
    interface ctn_sort
        module procedure f_sort
    end interface
    interface ctn_argsort
        module procedure f_argsort
    end interface
    interface ctn_cumprod
        module procedure f_cumprod
    end interface
    interface ctn_normalize
        module procedure f_normalize
    end interface
    interface ctn_cosine_similarity
        module procedure f_cosine_similarity
    end interface
    interface ctn_cross_covariance
        module procedure f_cross_covariance
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
    interface ctn_select_item
        module procedure f_select_item
    end interface
    interface ctn_permutate
        module procedure f_permutate
    end interface
    interface ctn_masked_fill
        module procedure f_masked_fill
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
    interface ctn_slice_step
        module procedure f_slice_step
    end interface
    interface ctn_as_strided
        module procedure f_as_strided
    end interface
    interface ctn_select
        module procedure f_select
    end interface
    interface ctn_separate
        module procedure f_separate
    end interface
    interface ctn_pad
        module procedure f_pad
    end interface
    interface ctn_pad_by
        module procedure f_pad_by
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
    interface ctn_flip
        module procedure f_flip
    end interface
    interface ctn_roll
        module procedure f_roll
    end interface
    interface ctn_repeat
        module procedure f_repeat
    end interface
    interface ctn_tile
        module procedure f_tile
    end interface
    interface ctn_moveaxis
        module procedure f_moveaxis
    end interface
    interface ctn_swapaxes
        module procedure f_swapaxes
    end interface
    interface ctn_diagonal
        module procedure f_diagonal
    end interface
    interface ctn_diag_embed
        module procedure f_diag_embed
    end interface
    interface ctn_einsum
        module procedure f_einsum
    end interface
    interface ctn_tensordot
        module procedure f_tensordot
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
        logical :: ok_
        integer(c_int) :: st_
        if (present(ctx)) ctx_ = c_context(address_of(ctx))
        ok_ = .true.
        call same_length(ok_, 'apply: out', &
            ubound(out, 1, c_int64_t), int(op%nout, c_int64_t), &
            'op.nout')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_apply(c_loc(here), ctx_, op, ubound(in, 1, kind=c_int), in, args, out)
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

    recursive function f_fft(x, axes, norm, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer(c_int), intent(in) :: norm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_fft(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t), norm)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_ifft(x, axes, norm, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer(c_int), intent(in) :: norm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_ifft(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t), norm)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_rfft(x, axes, norm, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer(c_int), intent(in) :: norm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_rfft(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t), norm)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_irfft(x, axes, n_last, norm, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer, intent(in) :: n_last
        integer(c_int), intent(in) :: norm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_irfft(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t), &
                int(n_last, c_int64_t), norm)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_complex_mul(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_complex_mul(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_index_select(x, index, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_index_select(c_loc(here), x, index, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_index_add(x, index, src, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        type(ctn_tensor), intent(in) :: src
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_index_add(c_loc(here), x, index, src, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_scatter(x, index, src, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        type(ctn_tensor), intent(in) :: src
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_scatter(c_loc(here), x, index, src, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_segment_sum(x, ids, n, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: ids
        integer, intent(in) :: n
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_segment_sum(c_loc(here), x, ids, int(n, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_segment_mean(x, ids, n, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: ids
        integer, intent(in) :: n
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_segment_mean(c_loc(here), x, ids, int(n, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_segment_max(x, ids, n, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: ids
        integer, intent(in) :: n
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_segment_max(c_loc(here), x, ids, int(n, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_segment_softmax(x, ids, n, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: ids
        integer, intent(in) :: n
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_segment_softmax(c_loc(here), x, ids, int(n, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_group_ids(ids, segments, offsets, order, stat, errmsg)
        type(ctn_tensor), intent(in) :: ids
        integer, intent(in) :: segments
        type(ctn_tensor), intent(out), optional :: offsets
        type(ctn_tensor), intent(out), optional :: order
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_group_ids(c_loc(here), ids, int(segments, c_int64_t), offsets, order)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_spmm(rowptr, col, value, x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: rowptr
        type(ctn_tensor), intent(in) :: col
        type(ctn_tensor), intent(in) :: value
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_spmm(c_loc(here), rowptr, col, value, x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_conv(x, w, b, stride, pad, pad_end, dilation, groups, out_pad, pad_mode, &
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
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_conv_opt) :: opt_
        logical :: ok_
        if (present(b)) b_ = b
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'conv: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'conv: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'conv: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'conv: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'conv: out_pad', &
            opt_%out_pad, out_pad)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        if (ok_) res = c_conv(c_loc(here), x, w, b_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_conv_transpose(x, w, b, stride, pad, pad_end, dilation, groups, out_pad, &
                pad_mode, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_conv_opt) :: opt_
        logical :: ok_
        if (present(b)) b_ = b
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'conv_transpose: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'conv_transpose: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'conv_transpose: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'conv_transpose: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'conv_transpose: out_pad', &
            opt_%out_pad, out_pad)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        if (ok_) res = c_conv_transpose(c_loc(here), x, w, b_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_im2col(x, kernel, stride, pad, pad_end, dilation, groups, out_pad, &
                pad_mode, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_conv_opt) :: opt_
        logical :: ok_
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'im2col: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'im2col: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'im2col: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'im2col: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'im2col: out_pad', &
            opt_%out_pad, out_pad)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        if (ok_) res = c_im2col(c_loc(here), x, ubound(kernel, 1, kind=c_int), int(kernel, &
                c_int64_t), opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_local_conv(x, w, b, stride, pad, pad_end, dilation, groups, out_pad, &
                pad_mode, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_conv_opt) :: opt_
        logical :: ok_
        if (present(b)) b_ = b
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'local_conv: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'local_conv: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'local_conv: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'local_conv: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'local_conv: out_pad', &
            opt_%out_pad, out_pad)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        if (ok_) res = c_local_conv(c_loc(here), x, w, b_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_deform_conv(x, offset, w, b, mask, stride, pad, pad_end, dilation, &
                groups, out_pad, pad_mode, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: offset
        type(ctn_tensor), intent(in) :: w
        type(ctn_tensor), intent(in), optional :: b
        type(ctn_tensor), intent(in), optional :: mask
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: b_
        type(ctn_tensor) :: mask_
        type(ctn_conv_opt) :: opt_
        logical :: ok_
        if (present(b)) b_ = b
        if (present(mask)) mask_ = mask
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'deform_conv: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'deform_conv: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'deform_conv: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'deform_conv: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'deform_conv: out_pad', &
            opt_%out_pad, out_pad)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        if (ok_) res = c_deform_conv(c_loc(here), x, offset, w, b_, mask_, opt_)
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
        logical :: ok_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'max_pool: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'max_pool: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'max_pool: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        if (ok_) res = c_max_pool(c_loc(here), x, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_max_pool_places(x, y, places, kernel, stride, pad, ceil, exclude_pad, &
                stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(out) :: y
        type(ctn_tensor), intent(out) :: places
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_pool_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'max_pool_places: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'max_pool_places: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'max_pool_places: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_max_pool_places(c_loc(here), x, opt_, y, places)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_max_unpool(y, places, size, kernel, stride, pad, ceil, exclude_pad, stat, &
                errmsg) result(res)
        type(ctn_tensor), intent(in) :: y
        type(ctn_tensor), intent(in) :: places
        integer, intent(in) :: size(:)
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_pool_opt) :: opt_
        logical :: ok_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'max_unpool: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'max_unpool: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'max_unpool: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        if (ok_) res = c_max_unpool(c_loc(here), y, places, opt_, ubound(size, 1, kind=c_int), &
                int(size, c_int64_t))
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
        logical :: ok_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'avg_pool: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'avg_pool: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'avg_pool: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        if (ok_) res = c_avg_pool(c_loc(here), x, opt_)
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

    recursive function f_spatial_pyramid_pool(x, levels, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: levels
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_spatial_pyramid_pool(c_loc(here), x, int(levels, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_roi_align(x, rois, roi_index, size, scale, max, sampling, aligned, &
                inclusive, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: rois
        type(ctn_tensor), intent(in) :: roi_index
        integer, intent(in), optional :: size(:)
        real(c_double), intent(in), optional :: scale
        integer, intent(in), optional :: max
        integer, intent(in), optional :: sampling(:)
        integer, intent(in), optional :: aligned
        integer, intent(in), optional :: inclusive
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_roi_opt) :: opt_
        logical :: ok_
        ok_ = .true.
        if (present(size)) call fill(ok_, 'roi_align: size', &
            opt_%size, size)
        if (present(scale)) opt_%scale = scale
        if (present(max)) opt_%max = max
        if (present(sampling)) call fill(ok_, 'roi_align: sampling', &
            opt_%sampling, sampling)
        if (present(aligned)) opt_%aligned = aligned
        if (present(inclusive)) opt_%inclusive = inclusive
        if (ok_) res = c_roi_align(c_loc(here), x, rois, roi_index, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_roi_pool(x, rois, roi_index, size, scale, max, sampling, aligned, &
                inclusive, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: rois
        type(ctn_tensor), intent(in) :: roi_index
        integer, intent(in), optional :: size(:)
        real(c_double), intent(in), optional :: scale
        integer, intent(in), optional :: max
        integer, intent(in), optional :: sampling(:)
        integer, intent(in), optional :: aligned
        integer, intent(in), optional :: inclusive
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_roi_opt) :: opt_
        logical :: ok_
        ok_ = .true.
        if (present(size)) call fill(ok_, 'roi_pool: size', &
            opt_%size, size)
        if (present(scale)) opt_%scale = scale
        if (present(max)) opt_%max = max
        if (present(sampling)) call fill(ok_, 'roi_pool: sampling', &
            opt_%sampling, sampling)
        if (present(aligned)) opt_%aligned = aligned
        if (present(inclusive)) opt_%inclusive = inclusive
        if (ok_) res = c_roi_pool(c_loc(here), x, rois, roi_index, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_batch_norm(x, mean, var, scale, shift, eps, momentum, frozen, stat, &
                errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_var), intent(in) :: mean
        type(ctn_var), intent(in) :: var
        type(ctn_tensor), intent(in), optional :: scale
        type(ctn_tensor), intent(in), optional :: shift
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        integer, intent(in), optional :: frozen
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
        if (present(frozen)) opt_%frozen = frozen
        res = c_batch_norm(c_loc(here), x, scale_, shift_, c_var(address_of(mean)), &
                c_var(address_of(var)), opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_decorrelated_batch_norm(x, mean, projection, groups, eps, momentum, stat, &
                errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_var), intent(in), optional :: mean
        type(ctn_var), intent(in), optional :: projection
        integer, intent(in), optional :: groups
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(c_var) :: mean_
        type(c_var) :: projection_
        type(ctn_decorrelated_batch_norm_opt) :: opt_
        if (present(mean)) mean_ = c_var(address_of(mean))
        if (present(projection)) projection_ = c_var(address_of(projection))
        if (present(groups)) opt_%groups = groups
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        res = c_decorrelated_batch_norm(c_loc(here), x, mean_, projection_, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_fixed_decorrelated_batch_norm(x, mean, projection, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: mean
        type(ctn_tensor), intent(in) :: projection
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_fixed_decorrelated_batch_norm(c_loc(here), x, mean, projection)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_batch_renorm(x, scale, shift, mean, var, eps, momentum, rmax, dmax, stat, &
                errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: scale
        type(ctn_tensor), intent(in) :: shift
        type(ctn_var), intent(in) :: mean
        type(ctn_var), intent(in) :: var
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: rmax
        real(c_double), intent(in), optional :: dmax
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_batch_renorm_opt) :: opt_
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        if (present(rmax)) opt_%rmax = rmax
        if (present(dmax)) opt_%dmax = dmax
        res = c_batch_renorm(c_loc(here), x, scale, shift, c_var(address_of(mean)), &
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

    recursive function f_local_response_norm(x, size, k, alpha, beta, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: size
        real(c_double), intent(in) :: k
        real(c_double), intent(in) :: alpha
        real(c_double), intent(in) :: beta
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_local_response_norm(c_loc(here), x, int(size, c_int64_t), k, alpha, beta)
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

    recursive function f_grid_sample(x, grid, align_corners, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: grid
        integer, intent(in) :: align_corners
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_grid_sample(c_loc(here), x, grid, int(align_corners, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_affine_grid(theta, height, width, align_corners, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: theta
        integer, intent(in) :: height
        integer, intent(in) :: width
        integer, intent(in) :: align_corners
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_affine_grid(c_loc(here), theta, int(height, c_int64_t), int(width, c_int64_t), &
                int(align_corners, c_int))
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

    recursive function f_cholesky(a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cholesky(c_loc(here), a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_solve_triangular(a, b, upper, trans, unit, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(in) :: upper
        integer, intent(in) :: trans
        integer, intent(in) :: unit
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_solve_triangular(c_loc(here), a, b, int(upper, c_int), int(trans, c_int), &
                int(unit, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_solve(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_solve(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_inverse(a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_inverse(c_loc(here), a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_det(a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_det(c_loc(here), a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_slogdet(a, sign, logabs, stat, errmsg)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(out), optional :: sign
        type(ctn_tensor), intent(out), optional :: logabs
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_slogdet(c_loc(here), a, sign, logabs)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_inverse_sqrt(a, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_inverse_sqrt(c_loc(here), a)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_lyapunov(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_lyapunov(c_loc(here), a, b)
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

    recursive function f_bernoulli_nll(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_bernoulli_nll(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_poisson_nll(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_poisson_nll(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gaussian_nll(mean, ln_var, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: mean
        type(ctn_tensor), intent(in) :: ln_var
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_gaussian_nll(c_loc(here), mean, ln_var, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gaussian_kl_divergence(mean, ln_var, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: mean
        type(ctn_tensor), intent(in) :: ln_var
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_gaussian_kl_divergence(c_loc(here), mean, ln_var, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_kl_div(x, t, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_kl_div(c_loc(here), x, t, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_hinge(x, t, p, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(in) :: p
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_hinge(c_loc(here), x, t, int(p, c_int), reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_contrastive(a, b, t, margin, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        type(ctn_tensor), intent(in) :: t
        real(c_double), intent(in) :: margin
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_contrastive(c_loc(here), a, b, t, margin, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_triplet(anchor, positive, negative, margin, reduction, stat, errmsg) &
                result(res)
        type(ctn_tensor), intent(in) :: anchor
        type(ctn_tensor), intent(in) :: positive
        type(ctn_tensor), intent(in) :: negative
        real(c_double), intent(in) :: margin
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reduction_
        reduction_ = 0
        if (present(reduction)) reduction_ = reduction
        res = c_triplet(c_loc(here), anchor, positive, negative, margin, reduction_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_decov(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_decov(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_discriminative_margin_based_clustering_loss(x, t, K, pull, push, norm, &
                variance, distance, regular, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(in) :: K
        real(c_double), intent(in), optional :: pull
        real(c_double), intent(in), optional :: push
        integer, intent(in), optional :: norm
        type(ctn_tensor), intent(out), optional :: variance
        type(ctn_tensor), intent(out), optional :: distance
        type(ctn_tensor), intent(out), optional :: regular
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_clustering_opt) :: opt_
        integer(c_int) :: st_
        if (present(pull)) opt_%pull = pull
        if (present(push)) opt_%push = push
        if (present(norm)) opt_%norm = norm
        st_ = c_discriminative_margin_based_clustering_loss(c_loc(here), x, t, int(K, c_int64_t), &
                opt_, variance, distance, regular)
        call settle(st_, stat, errmsg)
    end subroutine

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

    recursive function f_binary_accuracy(x, t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_binary_accuracy(c_loc(here), x, t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_r2_score(x, t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_r2_score(c_loc(here), x, t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_classification_summary(confusion, precision, recall, f1, support, stat, &
                errmsg)
        type(ctn_tensor), intent(in) :: confusion
        type(ctn_tensor), intent(out) :: precision
        type(ctn_tensor), intent(out) :: recall
        type(ctn_tensor), intent(out) :: f1
        type(ctn_tensor), intent(out) :: support
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_classification_summary(c_loc(here), confusion, precision, recall, f1, support)
        call settle(st_, stat, errmsg)
    end subroutine

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

    recursive function f_gaussian(mean, ln_var, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: mean
        type(ctn_tensor), intent(in) :: ln_var
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_gaussian(c_loc(here), mean, ln_var)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_gumbel_softmax(x, tau, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: tau
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_gumbel_softmax(c_loc(here), x, tau, int(axis, c_int))
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

    recursive function f_sin(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sin(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cos(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cos(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_tan(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_tan(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arcsin(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arcsin(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arccos(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arccos(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arctan(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arctan(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arctan2(y, x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: y
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arctan2(c_loc(here), y, x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_sinh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_sinh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cosh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cosh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arcsinh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arcsinh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arccosh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arccosh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_arctanh(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_arctanh(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_expm1(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_expm1(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log1p(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log1p(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log2(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log2(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log10(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log10(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_floor(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_floor(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_ceil(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_ceil(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_round(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_round(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_trunc(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_trunc(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_fmod(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_fmod(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_signed_power(x, p, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: p
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_signed_power(c_loc(here), x, p)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_squared_difference(a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_squared_difference(c_loc(here), a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_linear_interpolate(p, a, b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: p
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_linear_interpolate(c_loc(here), p, a, b)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_erf(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_erf(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_erfc(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_erfc(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_erfcx(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_erfcx(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_erfinv(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_erfinv(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_erfcinv(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_erfcinv(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_ndtr(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_ndtr(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_log_ndtr(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_log_ndtr(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_ndtri(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_ndtri(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_lgamma(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_lgamma(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_digamma(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_digamma(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_polygamma(n, x, stat, errmsg) result(res)
        integer, intent(in) :: n
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_polygamma(c_loc(here), int(n, c_int64_t), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_zeta(x, q, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: q
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_zeta(c_loc(here), x, q)
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

    recursive function f_selu(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_selu(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_hard_sigmoid(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_hard_sigmoid(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_hard_swish(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_hard_swish(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_mish(x, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_mish(c_loc(here), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_crelu(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_crelu(c_loc(here), x, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_maxout(x, pool, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: pool
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_maxout(c_loc(here), x, int(pool, c_int64_t), int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_rrelu(x, lower, upper, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: lower
        real(c_double), intent(in) :: upper
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_rrelu(c_loc(here), x, lower, upper)
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

    recursive subroutine f_tree_lstm(c, x, h, c_new, stat, errmsg)
        type(ctn_tensor), intent(in) :: c(:)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(out), optional :: h
        type(ctn_tensor), intent(out), optional :: c_new
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_tree_lstm(c_loc(here), ubound(c, 1, kind=c_int), c, x, h, c_new)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_slstm(c1, c2, x1, x2, h, c_new, stat, errmsg)
        type(ctn_tensor), intent(in) :: c1
        type(ctn_tensor), intent(in) :: c2
        type(ctn_tensor), intent(in) :: x1
        type(ctn_tensor), intent(in) :: x2
        type(ctn_tensor), intent(out), optional :: h
        type(ctn_tensor), intent(out), optional :: c_new
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_slstm(c_loc(here), c1, c2, x1, x2, h, c_new)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_ctc_loss(x, labels, input_lengths, label_lengths, blank, reduction, &
                per_label, zero_infinity, composed, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: labels
        type(ctn_tensor), intent(in), optional :: input_lengths
        type(ctn_tensor), intent(in), optional :: label_lengths
        integer, intent(in), optional :: blank
        integer(c_int), intent(in), optional :: reduction
        integer, intent(in), optional :: per_label
        integer, intent(in), optional :: zero_infinity
        integer, intent(in), optional :: composed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_ctc_opt) :: opt_
        if (present(input_lengths)) opt_%input_lengths = input_lengths
        if (present(label_lengths)) opt_%label_lengths = label_lengths
        if (present(blank)) opt_%blank = blank
        if (present(reduction)) opt_%reduction = reduction
        if (present(per_label)) opt_%per_label = per_label
        if (present(zero_infinity)) opt_%zero_infinity = zero_infinity
        if (present(composed)) opt_%composed = composed
        res = c_ctc_loss(c_loc(here), x, labels, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_crf_loss(cost, x, labels, lengths, reduction, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: cost
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: labels
        type(ctn_tensor), intent(in), optional :: lengths
        integer(c_int), intent(in), optional :: reduction
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_crf_opt) :: opt_
        if (present(lengths)) opt_%lengths = lengths
        if (present(reduction)) opt_%reduction = reduction
        res = c_crf_loss(c_loc(here), cost, x, labels, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_crf_decode(cost, x, lengths, path, score, stat, errmsg)
        type(ctn_tensor), intent(in) :: cost
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in), optional :: lengths
        type(ctn_tensor), intent(out), optional :: path
        type(ctn_tensor), intent(out), optional :: score
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: lengths_
        integer(c_int) :: st_
        if (present(lengths)) lengths_ = lengths
        st_ = c_crf_decode(c_loc(here), cost, x, lengths_, path, score)
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

    recursive function f_prod(x, axes, keep, stat, errmsg) result(res)
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
        res = c_prod(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_logsumexp(x, axes, keep, stat, errmsg) result(res)
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
        res = c_logsumexp(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_variance(x, correction, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: correction
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
        res = c_variance(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, int(correction, &
                c_int), keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_std(x, correction, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: correction
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
        res = c_std(c_loc(here), x, ubound(axes_, 1, kind=c_int), axes_, int(correction, c_int), &
                keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_norm(x, p, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        real(c_double), intent(in) :: p
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
        res = c_norm(c_loc(here), x, p, ubound(axes_, 1, kind=c_int), axes_, keep_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_average(x, weights, axes, keep, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in), optional :: weights
        integer, intent(in), optional :: axes(:)
        integer, intent(in), optional :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: weights_
        integer(c_int64_t), allocatable :: axes_(:)
        integer(c_int) :: keep_
        if (present(weights)) weights_ = weights
        call set_integers(axes_, axes)
        if (.not. allocated(axes_)) allocate (axes_(0))
        keep_ = 0
        if (present(keep)) keep_ = keep
        res = c_average(c_loc(here), x, weights_, ubound(axes_, 1, kind=c_int), axes_, keep_)
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

    recursive function f_argmin(x, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_argmin(c_loc(here), x, int(axis, c_int64_t))
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

    recursive subroutine f_sort(x, axis, descending, values, indices, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: descending
        type(ctn_tensor), intent(out), optional :: values
        type(ctn_tensor), intent(out), optional :: indices
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_sort(c_loc(here), x, int(axis, c_int64_t), int(descending, c_int), values, indices)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_argsort(x, axis, descending, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: descending
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_argsort(c_loc(here), x, int(axis, c_int64_t), int(descending, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cumprod(x, axis, reverse, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in), optional :: reverse
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int) :: reverse_
        reverse_ = 0
        if (present(reverse)) reverse_ = reverse
        res = c_cumprod(c_loc(here), x, int(axis, c_int64_t), reverse_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_normalize(x, axis, eps, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        real(c_double), intent(in) :: eps
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_normalize(c_loc(here), x, int(axis, c_int64_t), eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cosine_similarity(a, b, axis, eps, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(in) :: axis
        real(c_double), intent(in) :: eps
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cosine_similarity(c_loc(here), a, b, int(axis, c_int64_t), eps)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_cross_covariance(x, y, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: y
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_cross_covariance(c_loc(here), x, y)
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

    recursive function f_select_item(x, t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_select_item(c_loc(here), x, t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_permutate(x, index, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: index
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_permutate(c_loc(here), x, index, int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_masked_fill(x, mask, value, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        type(ctn_tensor), intent(in) :: mask
        real(c_double), intent(in) :: value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_masked_fill(c_loc(here), x, mask, value)
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
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'split: out', &
            ubound(out, 1, c_int64_t), ubound(sizes, 1, c_int64_t), &
            'as many as sizes')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_split(c_loc(here), x, int(axis, c_int64_t), ubound(sizes, 1, kind=c_int), &
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

    recursive function f_slice_step(x, axis, start, length, stride, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: start
        integer, intent(in) :: length
        integer, intent(in) :: stride
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_slice_step(c_loc(here), x, int(axis, c_int64_t), int(start, c_int64_t), &
                int(length, c_int64_t), int(stride, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_as_strided(x, dims, strides, offset, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: dims(:)
        integer, intent(in) :: strides(:)
        integer, intent(in) :: offset
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        logical :: ok_
        ok_ = .true.
        call same_length(ok_, 'as_strided: strides', &
            ubound(strides, 1, c_int64_t), ubound(dims, 1, c_int64_t), &
            'as many as dims')
        if (ok_) res = c_as_strided(c_loc(here), x, ubound(dims, 1, kind=c_int), int(dims, &
                c_int64_t), int(strides, c_int64_t), int(offset, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_select(x, axis, index, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: index
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_select(c_loc(here), x, int(axis, c_int64_t), int(index, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_separate(x, axis, out, stat, errmsg)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        type(ctn_tensor), intent(inout) :: out(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_separate(c_loc(here), x, int(axis, c_int64_t), ubound(out, 1, kind=c_int), out)
        call settle(st_, stat, errmsg)
    end subroutine

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
        logical :: ok_
        call set_integers(before_, before)
        call set_integers(after_, after)
        ok_ = .true.
        if (present(before)) call same_length(ok_, 'pad: before', &
            ubound(before, 1, c_int64_t), int(c_ndim(x), c_int64_t), &
            'one per dimension of x')
        if (present(after)) call same_length(ok_, 'pad: after', &
            ubound(after, 1, c_int64_t), int(c_ndim(x), c_int64_t), &
            'one per dimension of x')
        if (ok_) res = c_pad(c_loc(here), x, before_, after_, value)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_pad_by(x, mode, before, after, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer(c_int), intent(in) :: mode
        integer, intent(in), optional :: before(:)
        integer, intent(in), optional :: after(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        integer(c_int64_t), allocatable :: before_(:)
        integer(c_int64_t), allocatable :: after_(:)
        logical :: ok_
        call set_integers(before_, before)
        call set_integers(after_, after)
        ok_ = .true.
        if (present(before)) call same_length(ok_, 'pad_by: before', &
            ubound(before, 1, c_int64_t), int(c_ndim(x), c_int64_t), &
            'one per dimension of x')
        if (present(after)) call same_length(ok_, 'pad_by: after', &
            ubound(after, 1, c_int64_t), int(c_ndim(x), c_int64_t), &
            'one per dimension of x')
        if (ok_) res = c_pad_by(c_loc(here), x, mode, before_, after_)
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

    recursive function f_flip(x, axes, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axes(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_flip(c_loc(here), x, ubound(axes, 1, kind=c_int), int(axes, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_roll(x, axis, shift, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: axis
        integer, intent(in) :: shift
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_roll(c_loc(here), x, int(axis, c_int64_t), int(shift, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_repeat(x, n, axis, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: n
        integer, intent(in) :: axis
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_repeat(c_loc(here), x, int(n, c_int64_t), int(axis, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_tile(x, reps, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: reps(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_tile(c_loc(here), x, ubound(reps, 1, kind=c_int), int(reps, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_moveaxis(x, from, to, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: from
        integer, intent(in) :: to
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_moveaxis(c_loc(here), x, int(from, c_int64_t), int(to, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_swapaxes(x, i, j, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: i
        integer, intent(in) :: j
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_swapaxes(c_loc(here), x, int(i, c_int64_t), int(j, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_diagonal(x, offset, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: offset
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_diagonal(c_loc(here), x, int(offset, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_diag_embed(x, offset, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: offset
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_diag_embed(c_loc(here), x, int(offset, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_einsum(equation, x, stat, errmsg) result(res)
        character(*), intent(in) :: equation
        type(ctn_tensor), intent(in) :: x(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_einsum(c_loc(here), chars(equation), ubound(x, 1, kind=c_int), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_tensordot(a, b, axes_a, axes_b, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: a
        type(ctn_tensor), intent(in) :: b
        integer, intent(in) :: axes_a(:)
        integer, intent(in) :: axes_b(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        logical :: ok_
        ok_ = .true.
        call same_length(ok_, 'tensordot: axes_b', &
            ubound(axes_b, 1, c_int64_t), ubound(axes_a, 1, c_int64_t), &
            'as many as axes_a')
        if (ok_) res = c_tensordot(c_loc(here), a, b, ubound(axes_a, 1, kind=c_int), int(axes_a, &
                c_int64_t), int(axes_b, c_int64_t))
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

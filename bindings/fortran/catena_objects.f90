! SPDX-License-Identifier: Apache-2.0
!
! Handles as types that free their objects, and the functions that work with them. An
! action is a subroutine with the optional arguments stat and errmsg; see catena_base.f90.
! dev/interface writes this file from the public headers.
module catena_objects
    use, intrinsic :: iso_c_binding
    use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
    use catena_base
    use catena_types
    use catena_c, only: c_status_text => ctn_status_text, c_error_status => ctn_error_status, &
        c_error_trace => ctn_error_trace, c_version => ctn_version, c_version_text => &
        ctn_version_text, c_set_allocator => ctn_set_allocator, c_allocations => ctn_allocations, &
        c_mpi_init => ctn_mpi_init, c_mpi_finalize => ctn_mpi_finalize, c_comm_open => &
        ctn_comm_open, c_comm_loopback => ctn_comm_loopback, c_comm_adopt_fortran => &
        ctn_comm_adopt_fortran, c_comm_free => ctn_comm_free, c_comm_rank => ctn_comm_rank, &
        c_comm_size => ctn_comm_size, c_comm_nodes => ctn_comm_nodes, c_comm_node => &
        ctn_comm_node, c_comm_local_rank => ctn_comm_local_rank, c_comm_local_size => &
        ctn_comm_local_size, c_comm_transport => ctn_comm_transport, c_comm_algorithm => &
        ctn_comm_algorithm, c_comm_algorithm_name => ctn_comm_algorithm_name, c_comm_set_algorithm &
        => ctn_comm_set_algorithm, c_comm_recv_size => ctn_comm_recv_size, c_comm_barrier => &
        ctn_comm_barrier, c_comm_agree => ctn_comm_agree, c_comm_fail => ctn_comm_fail, &
        c_comm_break => ctn_comm_break, c_comm_survives => ctn_comm_survives, c_comm_lost => &
        ctn_comm_lost, c_comm_shrink => ctn_comm_shrink, c_comm_again => ctn_comm_again, &
        c_comm_split => ctn_comm_split, c_comm_get_stats => ctn_comm_get_stats, c_context_new => &
        ctn_context_new, c_context_free => ctn_context_free, c_context_threads => &
        ctn_context_threads, c_context_float_type => ctn_context_float_type, c_context_get_state &
        => ctn_context_get_state, c_context_set_state => ctn_context_set_state, &
        c_context_set_share => ctn_context_set_share, c_scope_begin => ctn_scope_begin, &
        c_scope_end => ctn_scope_end, c_scope_return => ctn_scope_return, c_scope_return_n => &
        ctn_scope_return_n, c_context_set_training => ctn_context_set_training, c_context_set_grad &
        => ctn_context_set_grad, c_context_training => ctn_context_training, c_number => &
        ctn_number_at, c_keep => ctn_keep, c_keep_graph => ctn_keep_graph, c_retain => ctn_retain, &
        c_retained_value => ctn_retained_value_at, c_retained_free => ctn_retained_free, &
        c_recompute_begin => ctn_recompute_begin, c_recompute_end => ctn_recompute_end, c_detach &
        => ctn_detach_at, c_grad => ctn_grad_at, c_with_grad => ctn_with_grad, c_var_new => &
        ctn_var_new, c_var_free => ctn_var_free, c_var_name => ctn_var_name, c_var_desc => &
        ctn_var_desc, c_var_kind_of => ctn_var_kind_of, c_var_set_trainable => &
        ctn_var_set_trainable, c_var_trainable => ctn_var_trainable, c_var_context => &
        ctn_var_context, c_use => ctn_use_at, c_assign => ctn_assign_at, c_flush => ctn_flush, &
        c_context_get_stats => ctn_context_get_stats, c_context_plan_text => &
        ctn_context_plan_text, c_context_decisions_text => ctn_context_decisions_text, &
        c_context_write_trace => ctn_context_write_trace, c_context_set_profile => &
        ctn_context_set_profile, c_dataset_free => ctn_dataset_free, c_dataset_count => &
        ctn_dataset_count, c_dataset_fields => ctn_dataset_fields, c_dataset_field => &
        ctn_dataset_field, c_dataset_length => ctn_dataset_length, c_dataset_name => &
        ctn_dataset_name, c_dataset_class => ctn_dataset_class, c_dataset_classes => &
        ctn_dataset_classes, c_dataset_resizes => ctn_dataset_resizes, c_idx_open => ctn_idx_open, &
        c_mnist_open => ctn_mnist_open, c_cifar10_open => ctn_cifar10_open, c_cifar100_open => &
        ctn_cifar100_open, c_svhn_open => ctn_svhn_open, c_sampler_sequential => &
        ctn_sampler_sequential, c_sampler_shuffled => ctn_sampler_shuffled, c_sampler_weighted => &
        ctn_sampler_weighted, c_sampler_bucketed => ctn_sampler_bucketed, c_sampler_new => &
        ctn_sampler_new, c_sampler_free => ctn_sampler_free, c_sampler_shard => ctn_sampler_shard, &
        c_sampler_count => ctn_sampler_count, c_sampler_total => ctn_sampler_total, &
        c_sampler_index => ctn_sampler_index, c_sampler_get_state => ctn_sampler_get_state, &
        c_sampler_set_state => ctn_sampler_set_state, c_loader_new => ctn_loader_new, &
        c_loader_free => ctn_loader_free, c_loader_next => ctn_loader_next, c_batch_tensor => &
        ctn_batch_tensor_at, c_loader_get_stats => ctn_loader_get_stats, c_loader_get_state => &
        ctn_loader_get_state, c_loader_set_state => ctn_loader_set_state, c_files_open => &
        ctn_files_open, c_csv_open => ctn_csv_open, c_csv_column => ctn_csv_column, c_tokens_open &
        => ctn_tokens_open, c_text_lines_open => ctn_text_lines_open, c_dataset_slice => &
        ctn_dataset_slice, c_dataset_subset => ctn_dataset_subset, c_dataset_split => &
        ctn_dataset_split, c_dataset_concat => ctn_dataset_concat, c_dataset_relabel => &
        ctn_dataset_relabel, c_dataset_mask => ctn_dataset_mask, c_dataset_moments => &
        ctn_dataset_moments, c_dataset_standardize => ctn_dataset_standardize, c_dist_optim => &
        ctn_dist_optim, c_dist_get_stats => ctn_dist_get_stats, c_dist_step_empty => &
        ctn_dist_step_empty_at, c_dist_values => ctn_dist_values, c_dist_broadcast_vars => &
        ctn_dist_broadcast_vars, c_dist_sync_batch_norm => ctn_dist_sync_batch_norm, c_dist_mean &
        => ctn_dist_mean, c_dist_evaluate => ctn_dist_evaluate, c_dist_trainer => &
        ctn_dist_trainer, c_dist_state_save => ctn_dist_state_save, c_dist_state_load => &
        ctn_dist_state_load, c_dist_timeline_has => ctn_dist_timeline_has, c_dist_timeline_begin &
        => ctn_dist_timeline_begin, c_dist_timeline_write => ctn_dist_timeline_write, &
        c_extend_timeline => ctn_extend_timeline, c_dist_allreduce => ctn_dist_allreduce_at, &
        c_dist_allreduce_max => ctn_dist_allreduce_max_at, c_dist_allreduce_min => &
        ctn_dist_allreduce_min_at, c_dist_reduce => ctn_dist_reduce_at, c_dist_reduce_max => &
        ctn_dist_reduce_max_at, c_dist_reduce_min => ctn_dist_reduce_min_at, c_dist_broadcast => &
        ctn_dist_broadcast_at, c_dist_allgather => ctn_dist_allgather_at, c_dist_reduce_scatter => &
        ctn_dist_reduce_scatter_at, c_dist_gather => ctn_dist_gather_at, c_dist_scatter => &
        ctn_dist_scatter_at, c_dist_alltoall => ctn_dist_alltoall_at, c_dist_send => &
        ctn_dist_send_at, c_dist_recv => ctn_dist_recv_at, c_dist_chain_new => ctn_dist_chain_new, &
        c_dist_chain_free => ctn_dist_chain_free, c_dist_chain_add => ctn_dist_chain_add_at, &
        c_dist_chain_recv => ctn_dist_chain_recv_at, c_dist_chain_send => ctn_dist_chain_send_at, &
        c_dist_chain_call => ctn_dist_chain_call_at, c_dist_grid_new => ctn_dist_grid_new, &
        c_dist_grid_free => ctn_dist_grid_free, c_dist_grid_length => ctn_dist_grid_length, &
        c_dist_grid_begin => ctn_dist_grid_begin, c_dist_halo => ctn_dist_halo_at, c_dist_field => &
        ctn_dist_field, c_env_count => ctn_env_count, c_env_get => ctn_env_get, c_generator_new => &
        ctn_generator_new, c_generator_free => ctn_generator_free, c_generator_next => &
        ctn_generator_next, c_generator_sequences => ctn_generator_sequences, c_image_folder_open &
        => ctn_image_folder_open, c_image_list_open => ctn_image_list_open, c_segmentation_open => &
        ctn_segmentation_open, c_shards_open => ctn_shards_open, c_shards_pack => ctn_shards_pack, &
        c_augment_new => ctn_augment_new, c_build_count => ctn_build_count, c_build_get => &
        ctn_build_get, c_machine_get => ctn_machine_get, c_weights_save => ctn_weights_save, &
        c_weights_save_with => ctn_weights_save_with, c_weights_load => ctn_weights_load, &
        c_published_write => ctn_published_write, c_lora_open => ctn_lora_open, c_weights_open => &
        ctn_weights_open, c_weights_free => ctn_weights_free, c_weights_format => &
        ctn_weights_format, c_weights_arrays => ctn_weights_arrays, c_weights_get_array => &
        ctn_weights_get_array, c_weights_find => ctn_weights_find, c_weights_write => &
        ctn_weights_write, c_part_module => ctn_part_module, c_part_optim => ctn_part_optim, &
        c_part_context => ctn_part_context, c_part_loader => ctn_part_loader, c_state_save => &
        ctn_state_save, c_state_load => ctn_state_load, c_var_init => ctn_var_init, c_module_new &
        => ctn_module_new, c_module_new_multi => ctn_module_new_multi, c_module_free => &
        ctn_module_free, c_module_add => ctn_module_add, c_module_children => ctn_module_children, &
        c_module_child => ctn_module_child, c_module_context => ctn_module_context, &
        c_module_predicts => ctn_module_predicts, c_module_ends => ctn_module_ends, c_module_param &
        => ctn_module_param, c_module_state => ctn_module_state, c_module_tie => ctn_module_tie, &
        c_call => ctn_call_at, c_call_multi => ctn_call_multi_at, c_module_set_recompute => &
        ctn_module_set_recompute, c_module_source => ctn_module_source, c_params => ctn_params, &
        c_module_find => ctn_module_find, c_module_set_trainable => ctn_module_set_trainable, &
        c_module_freeze_statistics => ctn_module_freeze_statistics, c_module_copy => &
        ctn_module_copy, c_module_share => ctn_module_share, c_sequential_new => &
        ctn_sequential_new, c_module_list_new => ctn_module_list_new, c_linear_new => &
        ctn_linear_new, c_conv_new => ctn_conv_new, c_conv_transpose_new => &
        ctn_conv_transpose_new, c_deform_conv_new => ctn_deform_conv_new, c_spectral_conv_new => &
        ctn_spectral_conv_new, c_batch_norm_new => ctn_batch_norm_new, &
        c_decorrelated_batch_norm_new => ctn_decorrelated_batch_norm_new, c_batch_renorm_new => &
        ctn_batch_renorm_new, c_batch_renorm_set_limits => ctn_batch_renorm_set_limits, &
        c_group_norm_new => ctn_group_norm_new, c_layer_norm_new => ctn_layer_norm_new, &
        c_rms_norm_new => ctn_rms_norm_new, c_embedding_new => ctn_embedding_new, c_lstm_new => &
        ctn_lstm_new, c_gru_new => ctn_gru_new, c_rnn_new => ctn_rnn_new, &
        c_child_sum_tree_lstm_new => ctn_child_sum_tree_lstm_new, c_nary_tree_lstm_new => &
        ctn_nary_tree_lstm_new, c_peephole_lstm_new => ctn_peephole_lstm_new, c_crf_new => &
        ctn_crf_new, c_graph_conv_new => ctn_graph_conv_new, c_graph_attention_new => &
        ctn_graph_attention_new, c_message_passing_new => ctn_message_passing_new, c_dropout_new &
        => ctn_dropout_new, c_max_pool_new => ctn_max_pool_new, c_avg_pool_new => &
        ctn_avg_pool_new, c_flatten_new => ctn_flatten_new, c_inception_new => ctn_inception_new, &
        c_inception_bn_new => ctn_inception_bn_new, c_activation_new => ctn_activation_new, &
        c_lora_add => ctn_lora_add, c_lora_merge => ctn_lora_merge, c_weight_norm_add => &
        ctn_weight_norm_add, c_spectral_norm_add => ctn_spectral_norm_add, c_onnx_open => &
        ctn_onnx_open, c_onnx_inputs => ctn_onnx_inputs, c_onnx_outputs => ctn_onnx_outputs, &
        c_onnx_input => ctn_onnx_input, c_onnx_output => ctn_onnx_output, c_onnx_run => &
        ctn_onnx_run_at, c_onnx_export => ctn_onnx_export, c_onnx_export_module => &
        ctn_onnx_export_module, c_relu => ctn_relu_at, c_global_avg_pool => &
        ctn_global_avg_pool_at, c_cholesky => ctn_cholesky_at, c_inverse => ctn_inverse_at, c_det &
        => ctn_det_at, c_inverse_sqrt => ctn_inverse_sqrt_at, c_decov => ctn_decov_at, c_neg => &
        ctn_neg_at, c_abs => ctn_abs_at, c_sign => ctn_sign_at, c_square => ctn_square_at, c_sqrt &
        => ctn_sqrt_at, c_rsqrt => ctn_rsqrt_at, c_exp => ctn_exp_at, c_log => ctn_log_at, c_sin &
        => ctn_sin_at, c_cos => ctn_cos_at, c_tan => ctn_tan_at, c_arcsin => ctn_arcsin_at, &
        c_arccos => ctn_arccos_at, c_arctan => ctn_arctan_at, c_sinh => ctn_sinh_at, c_cosh => &
        ctn_cosh_at, c_arcsinh => ctn_arcsinh_at, c_arccosh => ctn_arccosh_at, c_arctanh => &
        ctn_arctanh_at, c_expm1 => ctn_expm1_at, c_log1p => ctn_log1p_at, c_log2 => ctn_log2_at, &
        c_log10 => ctn_log10_at, c_floor => ctn_floor_at, c_ceil => ctn_ceil_at, c_round => &
        ctn_round_at, c_trunc => ctn_trunc_at, c_erf => ctn_erf_at, c_erfc => ctn_erfc_at, c_erfcx &
        => ctn_erfcx_at, c_erfinv => ctn_erfinv_at, c_erfcinv => ctn_erfcinv_at, c_ndtr => &
        ctn_ndtr_at, c_log_ndtr => ctn_log_ndtr_at, c_ndtri => ctn_ndtri_at, c_lgamma => &
        ctn_lgamma_at, c_digamma => ctn_digamma_at, c_sigmoid => ctn_sigmoid_at, c_tanh => &
        ctn_tanh_at, c_softplus => ctn_softplus_at, c_gelu => ctn_gelu_at, c_gelu_tanh => &
        ctn_gelu_tanh_at, c_swish => ctn_swish_at, c_selu => ctn_selu_at, c_hard_sigmoid => &
        ctn_hard_sigmoid_at, c_hard_swish => ctn_hard_swish_at, c_mish => ctn_mish_at, &
        c_logical_not => ctn_logical_not_at, c_sgd_new => ctn_sgd_new, c_adam_new => ctn_adam_new, &
        c_adamw_new => ctn_adamw_new, c_rmsprop_new => ctn_rmsprop_new, c_adagrad_new => &
        ctn_adagrad_new, c_adadelta_new => ctn_adadelta_new, c_adamax_new => ctn_adamax_new, &
        c_nadam_new => ctn_nadam_new, c_radam_new => ctn_radam_new, c_lion_new => ctn_lion_new, &
        c_lamb_new => ctn_lamb_new, c_lars_new => ctn_lars_new, c_adabound_new => &
        ctn_adabound_new, c_smorms3_new => ctn_smorms3_new, c_msvag_new => ctn_msvag_new, &
        c_adafactor_new => ctn_adafactor_new, c_lbfgs_new => ctn_lbfgs_new, c_optim_free => &
        ctn_optim_free, c_backward => ctn_backward_at, c_optim_step => ctn_optim_step_at, &
        c_optim_group => ctn_optim_group, c_optim_lr => ctn_optim_lr, c_optim_set_lr => &
        ctn_optim_set_lr, c_optim_hyper => ctn_optim_hyper, c_optim_set_hyper => &
        ctn_optim_set_hyper, c_optim_set_clip => ctn_optim_set_clip, c_optim_set_clip_value => &
        ctn_optim_set_clip_value, c_optim_set_lasso => ctn_optim_set_lasso, c_optim_set_noise => &
        ctn_optim_set_noise, c_optim_set_skip_nonfinite => ctn_optim_set_skip_nonfinite, &
        c_optim_norm => ctn_optim_norm, c_optim_steps => ctn_optim_steps, c_optim_set_loss_scale &
        => ctn_optim_set_loss_scale, c_optim_loss_scale => ctn_optim_loss_scale, c_optim_skipped &
        => ctn_optim_skipped, c_sched_factor => ctn_sched_factor, c_optim_set_schedule => &
        ctn_optim_set_schedule, c_dtype_size => ctn_dtype_size, c_dtype_name => ctn_dtype_name, &
        c_ndim => ctn_ndim, c_dim => ctn_dim, c_count => ctn_count, c_dtype_of => ctn_dtype_of, &
        c_item => ctn_item, c_tensor_text => ctn_tensor_text, c_tokenizer_open => &
        ctn_tokenizer_open, c_tokenizer_free => ctn_tokenizer_free, c_tokenizer_encode => &
        ctn_tokenizer_encode, c_tokenizer_decode => ctn_tokenizer_decode, c_tokenizer_decode_next &
        => ctn_tokenizer_decode_next, c_tokenizer_tokens => ctn_tokenizer_tokens, &
        c_tokenizer_token => ctn_tokenizer_token, c_tokenizer_id => ctn_tokenizer_id, &
        c_tokenizer_special => ctn_tokenizer_special, c_tokenizer_end => ctn_tokenizer_end, &
        c_tokenizer_around => ctn_tokenizer_around, c_tokenizer_chat => ctn_tokenizer_chat, &
        c_tokens_pack => ctn_tokens_pack, c_step_context => ctn_step_context, c_step_batch => &
        ctn_step_batch, c_step_input => ctn_step_input_at, c_report => ctn_report, c_report_ratio &
        => ctn_report_ratio, c_report_weight => ctn_report_weight, c_report_targets => &
        ctn_report_targets, c_report_metric => ctn_report_metric, c_trainer_new => &
        ctn_trainer_new, c_trainer_add_optim => ctn_trainer_add_optim, c_trainer_free => &
        ctn_trainer_free, c_trainer_run => ctn_trainer_run, c_trainer_stop => ctn_trainer_stop, &
        c_trainer_stopped => ctn_trainer_stopped, c_trainer_progress => ctn_trainer_progress, &
        c_trainer_optim => ctn_trainer_optim, c_trainer_loader => ctn_trainer_loader, &
        c_trainer_net => ctn_trainer_net, c_trainer_out => ctn_trainer_out, c_trainer_context => &
        ctn_trainer_context, c_trainer_observe => ctn_trainer_observe, c_trainer_value => &
        ctn_trainer_value, c_trainer_name => ctn_trainer_name, c_trainer_rows => ctn_trainer_rows, &
        c_trainer_row_value => ctn_trainer_row_value, c_trainer_row_progress => &
        ctn_trainer_row_progress, c_trainer_extend => ctn_trainer_extend, c_extend_evaluator => &
        ctn_extend_evaluator, c_evaluate => ctn_evaluate, c_extend_log => ctn_extend_log, &
        c_extend_progress => ctn_extend_progress, c_extend_print => ctn_extend_print, &
        c_extend_plot => ctn_extend_plot, c_extend_tensorboard => ctn_extend_tensorboard, &
        c_extend_html => ctn_extend_html, c_extend_schedule => ctn_extend_schedule, &
        c_extend_plateau => ctn_extend_plateau, c_extend_early_stop => ctn_extend_early_stop, &
        c_extend_observe => ctn_extend_observe, c_extend_param_stats => ctn_extend_param_stats, &
        c_extend_param_plot => ctn_extend_param_plot, c_extend_fail_on_nonfinite => &
        ctn_extend_fail_on_nonfinite, c_extend_on_nonfinite => ctn_extend_on_nonfinite, &
        c_extend_spikes => ctn_extend_spikes, c_extend_unfreeze => ctn_extend_unfreeze, &
        c_extend_average => ctn_extend_average, c_extend_swa => ctn_extend_swa, c_extend_weights &
        => ctn_extend_weights, c_extend_replicas => ctn_extend_replicas, c_extend_state => &
        ctn_extend_state, c_trainer_save => ctn_trainer_save, c_trainer_load => ctn_trainer_load, &
        c_memory_new => ctn_memory_new, c_memory_free => ctn_memory_free, c_extend_memory => &
        ctn_extend_memory, c_trainer_recall => ctn_trainer_recall, c_states_prune => &
        ctn_states_prune, c_state_export => ctn_state_export, c_tune_folder => ctn_tune_folder, &
        c_tune_clear => ctn_tune_clear, c_zoo_new => ctn_zoo_new, c_zoo_mlp => ctn_zoo_mlp, &
        c_zoo_lenet5 => ctn_zoo_lenet5, c_zoo_resnet => ctn_zoo_resnet, c_zoo_resnet_cifar => &
        ctn_zoo_resnet_cifar, c_zoo_mobilenet_v2 => ctn_zoo_mobilenet_v2, c_zoo_vgg => &
        ctn_zoo_vgg, c_zoo_googlenet => ctn_zoo_googlenet, c_zoo_unet => ctn_zoo_unet, c_zoo_fno &
        => ctn_zoo_fno, c_zoo_gpt => ctn_zoo_gpt, c_zoo_llama => ctn_zoo_llama, c_zoo_bert => &
        ctn_zoo_bert, c_zoo_vit => ctn_zoo_vit, c_zoo_seq2seq => ctn_zoo_seq2seq, c_zoo_gcn => &
        ctn_zoo_gcn, c_zoo_gat => ctn_zoo_gat, c_zoo_meshgraphnet => ctn_zoo_meshgraphnet, &
        c_zoo_open => ctn_zoo_open, c_comm => ctn_comm, c_retained => ctn_retained, c_dataset => &
        ctn_dataset, c_sampler => ctn_sampler, c_loader => ctn_loader, c_dist_chain => &
        ctn_dist_chain, c_dist_grid => ctn_dist_grid, c_generator => ctn_generator, c_weights => &
        ctn_weights, c_module => ctn_module, c_optim => ctn_optim, c_context => ctn_context, c_var &
        => ctn_var, c_tokenizer => ctn_tokenizer, c_trainer => ctn_trainer, c_step => ctn_step, &
        c_memory => ctn_memory
    implicit none
    private
    public :: ctn_comm, ctn_retained, ctn_dataset, ctn_sampler, ctn_loader, ctn_dist_chain, &
        ctn_dist_grid, ctn_generator, ctn_weights, ctn_module, ctn_optim, ctn_context, ctn_var, &
        ctn_tokenizer, ctn_trainer, ctn_step, ctn_memory, ctn_loss, ctn_order, ctn_layer, &
        ctn_layer_multi, ctn_listener, ctn_observer, ctn_action
    public :: ctn_status_text, ctn_error_status, ctn_error_trace, ctn_version, ctn_version_text, &
        ctn_set_allocator, ctn_allocations, ctn_mpi_init, ctn_mpi_finalize, ctn_comm_open, &
        ctn_comm_loopback, ctn_comm_from_mpi, ctn_comm_rank, ctn_comm_size, ctn_comm_nodes, &
        ctn_comm_node, ctn_comm_local_rank, ctn_comm_local_size, ctn_comm_transport, &
        ctn_comm_algorithm, ctn_comm_algorithm_name, ctn_comm_set_algorithm, ctn_comm_recv_size, &
        ctn_comm_barrier, ctn_comm_agree, ctn_comm_fail, ctn_comm_break, ctn_comm_survives, &
        ctn_comm_lost, ctn_comm_shrink, ctn_comm_again, ctn_comm_split, ctn_comm_get_stats, &
        ctn_context_new, ctn_context_threads, ctn_context_float_type, ctn_context_get_state, &
        ctn_context_set_state, ctn_context_set_share, ctn_scope_begin, ctn_scope_end, &
        ctn_scope_return, ctn_scope_return_n, ctn_context_set_training, ctn_context_set_grad, &
        ctn_context_training, ctn_number, ctn_keep, ctn_keep_graph, ctn_retain, &
        ctn_retained_value, ctn_recompute_begin, ctn_recompute_end, ctn_detach, ctn_grad, &
        ctn_with_grad, ctn_var_new, ctn_var_name, ctn_var_desc, ctn_var_kind_of, &
        ctn_var_set_trainable, ctn_var_trainable, ctn_var_context, ctn_use, ctn_assign, ctn_flush, &
        ctn_context_get_stats, ctn_context_plan_text, ctn_context_decisions_text, &
        ctn_context_write_trace, ctn_context_set_profile, ctn_dataset_count, ctn_dataset_fields, &
        ctn_dataset_field, ctn_dataset_length, ctn_dataset_name, ctn_dataset_class, &
        ctn_dataset_classes, ctn_dataset_resizes, ctn_idx_open, ctn_mnist_open, ctn_cifar10_open, &
        ctn_cifar100_open, ctn_svhn_open, ctn_sampler_sequential, ctn_sampler_shuffled, &
        ctn_sampler_weighted, ctn_sampler_bucketed, ctn_sampler_new, ctn_sampler_shard, &
        ctn_sampler_count, ctn_sampler_total, ctn_sampler_index, ctn_sampler_get_state, &
        ctn_sampler_set_state, ctn_loader_new, ctn_loader_next, ctn_batch_tensor, &
        ctn_loader_get_stats, ctn_loader_get_state, ctn_loader_set_state, ctn_files_open, &
        ctn_csv_open, ctn_csv_column, ctn_tokens_open, ctn_text_lines_open, ctn_dataset_slice, &
        ctn_dataset_subset, ctn_dataset_split, ctn_dataset_concat, ctn_dataset_relabel, &
        ctn_dataset_mask, ctn_dataset_moments, ctn_dataset_standardize, ctn_dist_optim, &
        ctn_dist_get_stats, ctn_dist_step_empty, ctn_dist_values, ctn_dist_broadcast_vars, &
        ctn_dist_sync_batch_norm, ctn_dist_mean, ctn_dist_evaluate, ctn_dist_trainer, &
        ctn_dist_state_save, ctn_dist_state_load, ctn_dist_timeline_has, ctn_dist_timeline_begin, &
        ctn_dist_timeline_write, ctn_extend_timeline, ctn_dist_allreduce, ctn_dist_allreduce_max, &
        ctn_dist_allreduce_min, ctn_dist_reduce, ctn_dist_reduce_max, ctn_dist_reduce_min, &
        ctn_dist_broadcast, ctn_dist_allgather, ctn_dist_reduce_scatter, ctn_dist_gather, &
        ctn_dist_scatter, ctn_dist_alltoall, ctn_dist_send, ctn_dist_recv, ctn_dist_chain_new, &
        ctn_dist_chain_add, ctn_dist_chain_recv, ctn_dist_chain_send, ctn_dist_chain_call, &
        ctn_dist_grid_new, ctn_dist_grid_length, ctn_dist_grid_begin, ctn_dist_halo, &
        ctn_dist_field, ctn_env_count, ctn_env_get, ctn_generator_new, ctn_generator_next, &
        ctn_generator_sequences, ctn_image_folder_open, ctn_image_list_open, &
        ctn_segmentation_open, ctn_shards_open, ctn_shards_pack, ctn_augment_new, ctn_build_count, &
        ctn_build_get, ctn_machine_get, ctn_weights_save, ctn_weights_save_with, ctn_weights_load, &
        ctn_published_write, ctn_lora_open, ctn_weights_open, ctn_weights_format, &
        ctn_weights_arrays, ctn_weights_get_array, ctn_weights_find, ctn_weights_write, &
        ctn_part_module, ctn_part_optim, ctn_part_context, ctn_part_loader, ctn_state_save, &
        ctn_state_load, ctn_var_init, ctn_module_new, ctn_module_new_multi, ctn_module_add, &
        ctn_module_children, ctn_module_child, ctn_module_context, ctn_module_predicts, &
        ctn_module_ends, ctn_module_param, ctn_module_state, ctn_module_tie, ctn_call, &
        ctn_call_multi, ctn_module_set_recompute, ctn_module_source, ctn_params, ctn_module_find, &
        ctn_module_set_trainable, ctn_module_freeze_statistics, ctn_module_copy, ctn_module_share, &
        ctn_sequential_new, ctn_module_list_new, ctn_linear_new, ctn_conv_new, &
        ctn_conv_transpose_new, ctn_deform_conv_new, ctn_spectral_conv_new, ctn_batch_norm_new, &
        ctn_decorrelated_batch_norm_new, ctn_batch_renorm_new, ctn_batch_renorm_set_limits, &
        ctn_group_norm_new, ctn_layer_norm_new, ctn_rms_norm_new, ctn_embedding_new, ctn_lstm_new, &
        ctn_gru_new, ctn_rnn_new, ctn_child_sum_tree_lstm_new, ctn_nary_tree_lstm_new, &
        ctn_peephole_lstm_new, ctn_crf_new, ctn_graph_conv_new, ctn_graph_attention_new, &
        ctn_message_passing_new, ctn_dropout_new, ctn_max_pool_new, ctn_avg_pool_new, &
        ctn_flatten_new, ctn_inception_new, ctn_inception_bn_new, ctn_activation_new, &
        ctn_lora_add, ctn_lora_merge, ctn_weight_norm_add, ctn_spectral_norm_add, ctn_onnx_open, &
        ctn_onnx_inputs, ctn_onnx_outputs, ctn_onnx_input, ctn_onnx_output, ctn_onnx_run, &
        ctn_onnx_export, ctn_onnx_export_module, ctn_sgd_new, ctn_adam_new, ctn_adamw_new, &
        ctn_rmsprop_new, ctn_adagrad_new, ctn_adadelta_new, ctn_adamax_new, ctn_nadam_new, &
        ctn_radam_new, ctn_lion_new, ctn_lamb_new, ctn_lars_new, ctn_adabound_new, &
        ctn_smorms3_new, ctn_msvag_new, ctn_adafactor_new, ctn_lbfgs_new, ctn_backward, &
        ctn_optim_step, ctn_optim_group, ctn_optim_lr, ctn_optim_set_lr, ctn_optim_hyper, &
        ctn_optim_set_hyper, ctn_optim_set_clip, ctn_optim_set_clip_value, ctn_optim_set_lasso, &
        ctn_optim_set_noise, ctn_optim_set_skip_nonfinite, ctn_optim_norm, ctn_optim_steps, &
        ctn_optim_set_loss_scale, ctn_optim_loss_scale, ctn_optim_skipped, ctn_sched_factor, &
        ctn_optim_set_schedule, ctn_dtype_size, ctn_dtype_name, ctn_ndim, ctn_dim, ctn_count, &
        ctn_dtype_of, ctn_item, ctn_tensor_text, ctn_tokenizer_open, ctn_tokenizer_encode, &
        ctn_tokenizer_decode, ctn_tokenizer_decode_next, ctn_tokenizer_tokens, &
        ctn_tokenizer_token, ctn_tokenizer_id, ctn_tokenizer_special, ctn_tokenizer_end, &
        ctn_tokenizer_around, ctn_tokenizer_chat, ctn_tokens_pack, ctn_step_context, &
        ctn_step_batch, ctn_step_input, ctn_report, ctn_report_ratio, ctn_report_weight, &
        ctn_report_targets, ctn_report_metric, ctn_trainer_new, ctn_trainer_add_optim, &
        ctn_trainer_run, ctn_trainer_stop, ctn_trainer_stopped, ctn_trainer_progress, &
        ctn_trainer_optim, ctn_trainer_loader, ctn_trainer_net, ctn_trainer_out, &
        ctn_trainer_context, ctn_trainer_observe, ctn_trainer_value, ctn_trainer_name, &
        ctn_trainer_rows, ctn_trainer_row_value, ctn_trainer_row_progress, ctn_extend_evaluator, &
        ctn_evaluate, ctn_extend_log, ctn_extend_progress, ctn_extend_print, ctn_extend_plot, &
        ctn_extend_tensorboard, ctn_extend_html, ctn_extend_schedule, ctn_extend_plateau, &
        ctn_extend_early_stop, ctn_extend_observe, ctn_extend_param_stats, ctn_extend_param_plot, &
        ctn_extend_fail_on_nonfinite, ctn_extend_on_nonfinite, ctn_extend_spikes, &
        ctn_extend_unfreeze, ctn_extend_average, ctn_extend_swa, ctn_extend_weights, &
        ctn_extend_replicas, ctn_extend_state, ctn_trainer_save, ctn_trainer_load, ctn_memory_new, &
        ctn_extend_memory, ctn_trainer_recall, ctn_states_prune, ctn_state_export, &
        ctn_tune_folder, ctn_tune_clear, ctn_zoo_new, ctn_zoo_mlp, ctn_zoo_lenet5, ctn_zoo_resnet, &
        ctn_zoo_resnet_cifar, ctn_zoo_mobilenet_v2, ctn_zoo_vgg, ctn_zoo_googlenet, ctn_zoo_unet, &
        ctn_zoo_fno, ctn_zoo_gpt, ctn_zoo_llama, ctn_zoo_bert, ctn_zoo_vit, ctn_zoo_seq2seq, &
        ctn_zoo_gcn, ctn_zoo_gat, ctn_zoo_meshgraphnet, ctn_zoo_open, ctn_comm_free, &
        ctn_retained_free, ctn_dataset_free, ctn_sampler_free, ctn_loader_free, &
        ctn_dist_chain_free, ctn_dist_grid_free, ctn_generator_free, ctn_weights_free, &
        ctn_module_free, ctn_optim_free, ctn_context_free, ctn_var_free, ctn_tokenizer_free, &
        ctn_trainer_free, ctn_memory_free, ctn_trainer_extend
    public :: op_named

    type, extends(ctn_ref) :: ctn_comm
    contains
        procedure :: rank => f_comm_rank
        procedure :: size => f_comm_size
        procedure :: nodes => f_comm_nodes
        procedure :: node => f_comm_node
        procedure :: local_rank => f_comm_local_rank
        procedure :: local_size => f_comm_local_size
        procedure :: transport => f_comm_transport
        procedure :: algorithm => f_comm_algorithm
        procedure :: set_algorithm => f_comm_set_algorithm
        procedure :: recv_size => f_comm_recv_size
        procedure :: barrier => f_comm_barrier
        procedure :: agree => f_comm_agree
        procedure :: fail => f_comm_fail
        procedure :: break => f_comm_break
        procedure :: survives => f_comm_survives
        procedure :: lost => f_comm_lost
        procedure :: get_stats => f_comm_get_stats
        procedure :: free => f_comm_free
    end type
    type, extends(ctn_ref) :: ctn_retained
    contains
        procedure :: value => f_retained_value
        procedure :: free => f_retained_free
    end type
    type, extends(ctn_ref) :: ctn_dataset
    contains
        procedure :: count => f_dataset_count
        procedure :: fields => f_dataset_fields
        procedure :: field => f_dataset_field
        procedure :: length => f_dataset_length
        procedure :: name => f_dataset_name
        procedure :: class => f_dataset_class
        procedure :: classes => f_dataset_classes
        procedure :: resizes => f_dataset_resizes
        procedure :: moments => f_dataset_moments
        procedure :: free => f_dataset_free
    end type
    type, extends(ctn_ref) :: ctn_sampler
    contains
        procedure :: shard => f_sampler_shard
        procedure :: count => f_sampler_count
        procedure :: total => f_sampler_total
        procedure :: index => f_sampler_index
        procedure :: get_state => f_sampler_get_state
        procedure :: set_state => f_sampler_set_state
        procedure :: free => f_sampler_free
    end type
    type, extends(ctn_ref) :: ctn_loader
    contains
        procedure :: next => f_loader_next
        procedure :: get_stats => f_loader_get_stats
        procedure :: get_state => f_loader_get_state
        procedure :: set_state => f_loader_set_state
        procedure :: free => f_loader_free
    end type
    type, extends(ctn_ref) :: ctn_dist_chain
    contains
        procedure :: add => f_dist_chain_add
        procedure :: recv => f_dist_chain_recv
        procedure :: send => f_dist_chain_send
        procedure :: call => f_dist_chain_call
        procedure :: free => f_dist_chain_free
    end type
    type, extends(ctn_ref) :: ctn_dist_grid
    contains
        procedure :: length => f_dist_grid_length
        procedure :: begin => f_dist_grid_begin
        procedure :: free => f_dist_grid_free
    end type
    type, extends(ctn_ref) :: ctn_generator
    contains
        procedure :: next => f_generator_next
        procedure :: sequences => f_generator_sequences
        procedure :: free => f_generator_free
    end type
    type, extends(ctn_ref) :: ctn_weights
    contains
        procedure :: format => f_weights_format
        procedure :: arrays => f_weights_arrays
        procedure :: get_array => f_weights_get_array
        procedure :: find => f_weights_find
        procedure :: free => f_weights_free
    end type
    type, extends(ctn_ref) :: ctn_module
    contains
        procedure :: add => f_module_add
        procedure :: children => f_module_children
        procedure :: child => f_module_child
        procedure :: context => f_module_context
        procedure :: predicts => f_module_predicts
        procedure :: ends => f_module_ends
        procedure :: tie => f_module_tie
        procedure :: set_recompute => f_module_set_recompute
        procedure :: source => f_module_source
        procedure :: find => f_module_find
        procedure :: set_trainable => f_module_set_trainable
        procedure :: freeze_statistics => f_module_freeze_statistics
        procedure :: free => f_module_free
    end type
    type, extends(ctn_ref) :: ctn_optim
    contains
        procedure :: step => f_optim_step
        procedure :: group => f_optim_group
        procedure :: lr => f_optim_lr
        procedure :: set_lr => f_optim_set_lr
        procedure :: hyper => f_optim_hyper
        procedure :: set_hyper => f_optim_set_hyper
        procedure :: set_clip => f_optim_set_clip
        procedure :: set_clip_value => f_optim_set_clip_value
        procedure :: set_lasso => f_optim_set_lasso
        procedure :: set_noise => f_optim_set_noise
        procedure :: set_skip_nonfinite => f_optim_set_skip_nonfinite
        procedure :: norm => f_optim_norm
        procedure :: steps => f_optim_steps
        procedure :: set_loss_scale => f_optim_set_loss_scale
        procedure :: loss_scale => f_optim_loss_scale
        procedure :: skipped => f_optim_skipped
        procedure :: set_schedule => f_optim_set_schedule
        procedure :: free => f_optim_free
    end type
    type, extends(ctn_ref) :: ctn_context
    contains
        procedure :: threads => f_context_threads
        procedure :: float_type => f_context_float_type
        procedure :: get_state => f_context_get_state
        procedure :: set_state => f_context_set_state
        procedure :: set_share => f_context_set_share
        procedure :: set_training => f_context_set_training
        procedure :: set_grad => f_context_set_grad
        procedure :: training => f_context_training
        procedure :: get_stats => f_context_get_stats
        procedure :: plan_text => f_context_plan_text
        procedure :: decisions_text => f_context_decisions_text
        procedure :: write_trace => f_context_write_trace
        procedure :: set_profile => f_context_set_profile
        procedure :: free => f_context_free
    end type
    type, extends(ctn_ref) :: ctn_var
    contains
        procedure :: name => f_var_name
        procedure :: desc => f_var_desc
        procedure :: kind_of => f_var_kind_of
        procedure :: set_trainable => f_var_set_trainable
        procedure :: trainable => f_var_trainable
        procedure :: context => f_var_context
        procedure :: init => f_var_init
        procedure :: free => f_var_free
    end type
    type, extends(ctn_ref) :: ctn_tokenizer
    contains
        procedure :: encode => f_tokenizer_encode
        procedure :: decode => f_tokenizer_decode
        procedure :: decode_next => f_tokenizer_decode_next
        procedure :: tokens => f_tokenizer_tokens
        procedure :: token => f_tokenizer_token
        procedure :: id => f_tokenizer_id
        procedure :: special => f_tokenizer_special
        procedure :: end => f_tokenizer_end
        procedure :: around => f_tokenizer_around
        procedure :: chat => f_tokenizer_chat
        procedure :: free => f_tokenizer_free
    end type
    type, extends(ctn_ref) :: ctn_trainer
    contains
        procedure :: add_optim => f_trainer_add_optim
        procedure :: run => f_trainer_run
        procedure :: stop => f_trainer_stop
        procedure :: stopped => f_trainer_stopped
        procedure :: progress => f_trainer_progress
        procedure :: optim => f_trainer_optim
        procedure :: loader => f_trainer_loader
        procedure :: net => f_trainer_net
        procedure :: out => f_trainer_out
        procedure :: context => f_trainer_context
        procedure :: observe => f_trainer_observe
        procedure :: value => f_trainer_value
        procedure :: name => f_trainer_name
        procedure :: rows => f_trainer_rows
        procedure :: row_value => f_trainer_row_value
        procedure :: row_progress => f_trainer_row_progress
        procedure :: save => f_trainer_save
        procedure :: load => f_trainer_load
        procedure :: recall => f_trainer_recall
        procedure :: extend => f_trainer_extend
        procedure :: free => f_trainer_free
    end type
    type, extends(ctn_ref) :: ctn_step
    contains
        procedure :: context => f_step_context
        procedure :: batch => f_step_batch
        procedure :: input => f_step_input
    end type
    type, extends(ctn_ref) :: ctn_memory
    contains
        procedure :: free => f_memory_free
    end type

    ! Types that a program extends, so that the library calls its procedures. An object of such a
    ! type must have the target attribute and live as long as what it was passed to.

    ! The loss of one batch: t = self%of(step).
    type, abstract :: ctn_loss
    contains
        procedure(loss_of), deferred :: of
    end type
    ! An order of samples: index = self%sample(at) is a pure function of `at`, counted from 0. It is
    ! called from several threads at once.
    type, abstract :: ctn_order
    contains
        procedure(order_sample), deferred :: sample
    end type
    ! The forward function of a module: y = self%forward(m, x).
    type, abstract :: ctn_layer
    contains
        procedure(layer_forward), deferred :: forward
    end type
    type, abstract :: ctn_layer_multi
    contains
        procedure(layer_forward_multi), deferred :: forward
    end type
    ! Gets the values of an evaluation: call self%hear(name, value).
    type, abstract :: ctn_listener
    contains
        procedure(listener_hear), deferred :: hear
    end type
    ! A value for the log: self%value(trainer).
    type, abstract :: ctn_observer
    contains
        procedure(observer_value), deferred :: value
    end type
    ! An extension of a trainer. A status less than 0 ends the run.
    type, abstract :: ctn_action
    contains
        procedure(action_call), deferred :: call
        procedure :: start => do_nothing
        procedure :: finish => do_nothing
    end type

    abstract interface
        function loss_of(self, s) result(t)
            import
            class(ctn_loss), intent(inout) :: self
            type(ctn_step), intent(in) :: s
            type(ctn_tensor) :: t
        end function
        function order_sample(self, at) result(index)
            import
            class(ctn_order), intent(in) :: self
            type(ctn_sampler_state), intent(in) :: at
            integer(c_int64_t) :: index
        end function
        function layer_forward(self, m, x) result(y)
            import
            class(ctn_layer), intent(inout) :: self
            type(ctn_module), intent(in) :: m
            type(ctn_tensor), intent(in) :: x
            type(ctn_tensor) :: y
        end function
        function layer_forward_multi(self, m, x) result(y)
            import
            class(ctn_layer_multi), intent(inout) :: self
            type(ctn_module), intent(in) :: m
            type(ctn_tensors), intent(in) :: x
            type(ctn_tensors) :: y
        end function
        subroutine listener_hear(self, name, value)
            import
            class(ctn_listener), intent(inout) :: self
            character(*), intent(in) :: name
            real(c_double), intent(in) :: value
        end subroutine
        function observer_value(self, tr) result(value)
            import
            class(ctn_observer), intent(inout) :: self
            type(ctn_trainer), intent(in) :: tr
            real(c_double) :: value
        end function
        subroutine action_call(self, tr, status)
            import
            class(ctn_action), intent(inout) :: self
            type(ctn_trainer), intent(in) :: tr
            integer, intent(inout) :: status
        end subroutine
    end interface

    interface ctn_status_text
        module procedure f_status_text
    end interface
    interface ctn_error_status
        module procedure f_error_status
    end interface
    interface ctn_error_trace
        module procedure f_error_trace
    end interface
    interface ctn_version
        module procedure f_version
    end interface
    interface ctn_version_text
        module procedure f_version_text
    end interface
    interface ctn_set_allocator
        module procedure f_set_allocator
    end interface
    interface ctn_allocations
        module procedure f_allocations
    end interface
    interface ctn_mpi_init
        module procedure f_mpi_init
    end interface
    interface ctn_mpi_finalize
        module procedure f_mpi_finalize
    end interface
    interface ctn_comm_open
        module procedure f_comm_open
    end interface
    interface ctn_comm_loopback
        module procedure f_comm_loopback
    end interface
    interface ctn_comm_from_mpi
        module procedure f_comm_from_mpi
    end interface
    interface ctn_comm_rank
        module procedure f_comm_rank
    end interface
    interface ctn_comm_size
        module procedure f_comm_size
    end interface
    interface ctn_comm_nodes
        module procedure f_comm_nodes
    end interface
    interface ctn_comm_node
        module procedure f_comm_node
    end interface
    interface ctn_comm_local_rank
        module procedure f_comm_local_rank
    end interface
    interface ctn_comm_local_size
        module procedure f_comm_local_size
    end interface
    interface ctn_comm_transport
        module procedure f_comm_transport
    end interface
    interface ctn_comm_algorithm
        module procedure f_comm_algorithm
    end interface
    interface ctn_comm_algorithm_name
        module procedure f_comm_algorithm_name
    end interface
    interface ctn_comm_set_algorithm
        module procedure f_comm_set_algorithm
    end interface
    interface ctn_comm_recv_size
        module procedure f_comm_recv_size
    end interface
    interface ctn_comm_barrier
        module procedure f_comm_barrier
    end interface
    interface ctn_comm_agree
        module procedure f_comm_agree
    end interface
    interface ctn_comm_fail
        module procedure f_comm_fail
    end interface
    interface ctn_comm_break
        module procedure f_comm_break
    end interface
    interface ctn_comm_survives
        module procedure f_comm_survives
    end interface
    interface ctn_comm_lost
        module procedure f_comm_lost
    end interface
    interface ctn_comm_shrink
        module procedure f_comm_shrink
    end interface
    interface ctn_comm_again
        module procedure f_comm_again
    end interface
    interface ctn_comm_split
        module procedure f_comm_split
    end interface
    interface ctn_comm_get_stats
        module procedure f_comm_get_stats
    end interface
    interface ctn_context_new
        module procedure f_context_new
    end interface
    interface ctn_context_threads
        module procedure f_context_threads
    end interface
    interface ctn_context_float_type
        module procedure f_context_float_type
    end interface
    interface ctn_context_get_state
        module procedure f_context_get_state
    end interface
    interface ctn_context_set_state
        module procedure f_context_set_state
    end interface
    interface ctn_context_set_share
        module procedure f_context_set_share
    end interface
    interface ctn_scope_begin
        module procedure f_scope_begin
    end interface
    interface ctn_scope_end
        module procedure f_scope_end
    end interface
    interface ctn_scope_return
        module procedure f_scope_return
    end interface
    interface ctn_scope_return_n
        module procedure f_scope_return_n
    end interface
    interface ctn_context_set_training
        module procedure f_context_set_training
    end interface
    interface ctn_context_set_grad
        module procedure f_context_set_grad
    end interface
    interface ctn_context_training
        module procedure f_context_training
    end interface
    interface ctn_number
        module procedure f_number
    end interface
    interface ctn_keep
        module procedure f_keep
    end interface
    interface ctn_keep_graph
        module procedure f_keep_graph
    end interface
    interface ctn_retain
        module procedure f_retain
    end interface
    interface ctn_retained_value
        module procedure f_retained_value
    end interface
    interface ctn_recompute_begin
        module procedure f_recompute_begin
    end interface
    interface ctn_recompute_end
        module procedure f_recompute_end
    end interface
    interface ctn_detach
        module procedure f_detach
    end interface
    interface ctn_grad
        module procedure f_grad
    end interface
    interface ctn_with_grad
        module procedure f_with_grad
    end interface
    interface ctn_var_new
        module procedure f_var_new
    end interface
    interface ctn_var_name
        module procedure f_var_name
    end interface
    interface ctn_var_desc
        module procedure f_var_desc
    end interface
    interface ctn_var_kind_of
        module procedure f_var_kind_of
    end interface
    interface ctn_var_set_trainable
        module procedure f_var_set_trainable
    end interface
    interface ctn_var_trainable
        module procedure f_var_trainable
    end interface
    interface ctn_var_context
        module procedure f_var_context
    end interface
    interface ctn_use
        module procedure f_use
    end interface
    interface ctn_assign
        module procedure f_assign
    end interface
    interface ctn_flush
        module procedure f_flush
    end interface
    interface ctn_context_get_stats
        module procedure f_context_get_stats
    end interface
    interface ctn_context_plan_text
        module procedure f_context_plan_text
    end interface
    interface ctn_context_decisions_text
        module procedure f_context_decisions_text
    end interface
    interface ctn_context_write_trace
        module procedure f_context_write_trace
    end interface
    interface ctn_context_set_profile
        module procedure f_context_set_profile
    end interface
    interface ctn_dataset_count
        module procedure f_dataset_count
    end interface
    interface ctn_dataset_fields
        module procedure f_dataset_fields
    end interface
    interface ctn_dataset_field
        module procedure f_dataset_field
    end interface
    interface ctn_dataset_length
        module procedure f_dataset_length
    end interface
    interface ctn_dataset_name
        module procedure f_dataset_name
    end interface
    interface ctn_dataset_class
        module procedure f_dataset_class
    end interface
    interface ctn_dataset_classes
        module procedure f_dataset_classes
    end interface
    interface ctn_dataset_resizes
        module procedure f_dataset_resizes
    end interface
    interface ctn_idx_open
        module procedure f_idx_open
    end interface
    interface ctn_mnist_open
        module procedure f_mnist_open
    end interface
    interface ctn_cifar10_open
        module procedure f_cifar10_open
    end interface
    interface ctn_cifar100_open
        module procedure f_cifar100_open
    end interface
    interface ctn_svhn_open
        module procedure f_svhn_open
    end interface
    interface ctn_sampler_sequential
        module procedure f_sampler_sequential
    end interface
    interface ctn_sampler_shuffled
        module procedure f_sampler_shuffled
    end interface
    interface ctn_sampler_weighted
        module procedure f_sampler_weighted
    end interface
    interface ctn_sampler_bucketed
        module procedure f_sampler_bucketed
    end interface
    interface ctn_sampler_new
        module procedure f_sampler_new
    end interface
    interface ctn_sampler_shard
        module procedure f_sampler_shard
    end interface
    interface ctn_sampler_count
        module procedure f_sampler_count
    end interface
    interface ctn_sampler_total
        module procedure f_sampler_total
    end interface
    interface ctn_sampler_index
        module procedure f_sampler_index
    end interface
    interface ctn_sampler_get_state
        module procedure f_sampler_get_state
    end interface
    interface ctn_sampler_set_state
        module procedure f_sampler_set_state
    end interface
    interface ctn_loader_new
        module procedure f_loader_new
    end interface
    interface ctn_loader_next
        module procedure f_loader_next
    end interface
    interface ctn_batch_tensor
        module procedure f_batch_tensor
    end interface
    interface ctn_loader_get_stats
        module procedure f_loader_get_stats
    end interface
    interface ctn_loader_get_state
        module procedure f_loader_get_state
    end interface
    interface ctn_loader_set_state
        module procedure f_loader_set_state
    end interface
    interface ctn_files_open
        module procedure f_files_open
    end interface
    interface ctn_csv_open
        module procedure f_csv_open
    end interface
    interface ctn_csv_column
        module procedure f_csv_column
    end interface
    interface ctn_tokens_open
        module procedure f_tokens_open
    end interface
    interface ctn_text_lines_open
        module procedure f_text_lines_open
    end interface
    interface ctn_dataset_slice
        module procedure f_dataset_slice
    end interface
    interface ctn_dataset_subset
        module procedure f_dataset_subset
    end interface
    interface ctn_dataset_split
        module procedure f_dataset_split
    end interface
    interface ctn_dataset_concat
        module procedure f_dataset_concat
    end interface
    interface ctn_dataset_relabel
        module procedure f_dataset_relabel
    end interface
    interface ctn_dataset_mask
        module procedure f_dataset_mask
    end interface
    interface ctn_dataset_moments
        module procedure f_dataset_moments
    end interface
    interface ctn_dataset_standardize
        module procedure f_dataset_standardize
    end interface
    interface ctn_dist_optim
        module procedure f_dist_optim
    end interface
    interface ctn_dist_get_stats
        module procedure f_dist_get_stats
    end interface
    interface ctn_dist_step_empty
        module procedure f_dist_step_empty
    end interface
    interface ctn_dist_values
        module procedure f_dist_values
    end interface
    interface ctn_dist_broadcast_vars
        module procedure f_dist_broadcast_vars, f_dist_broadcast_vars_module
    end interface
    interface ctn_dist_sync_batch_norm
        module procedure f_dist_sync_batch_norm
    end interface
    interface ctn_dist_mean
        module procedure f_dist_mean
    end interface
    interface ctn_dist_evaluate
        module procedure f_dist_evaluate
    end interface
    interface ctn_dist_trainer
        module procedure f_dist_trainer
    end interface
    interface ctn_dist_state_save
        module procedure f_dist_state_save
    end interface
    interface ctn_dist_state_load
        module procedure f_dist_state_load
    end interface
    interface ctn_dist_timeline_has
        module procedure f_dist_timeline_has
    end interface
    interface ctn_dist_timeline_begin
        module procedure f_dist_timeline_begin
    end interface
    interface ctn_dist_timeline_write
        module procedure f_dist_timeline_write
    end interface
    interface ctn_extend_timeline
        module procedure f_extend_timeline
    end interface
    interface ctn_dist_allreduce
        module procedure f_dist_allreduce
    end interface
    interface ctn_dist_allreduce_max
        module procedure f_dist_allreduce_max
    end interface
    interface ctn_dist_allreduce_min
        module procedure f_dist_allreduce_min
    end interface
    interface ctn_dist_reduce
        module procedure f_dist_reduce
    end interface
    interface ctn_dist_reduce_max
        module procedure f_dist_reduce_max
    end interface
    interface ctn_dist_reduce_min
        module procedure f_dist_reduce_min
    end interface
    interface ctn_dist_broadcast
        module procedure f_dist_broadcast
    end interface
    interface ctn_dist_allgather
        module procedure f_dist_allgather
    end interface
    interface ctn_dist_reduce_scatter
        module procedure f_dist_reduce_scatter
    end interface
    interface ctn_dist_gather
        module procedure f_dist_gather
    end interface
    interface ctn_dist_scatter
        module procedure f_dist_scatter
    end interface
    interface ctn_dist_alltoall
        module procedure f_dist_alltoall
    end interface
    interface ctn_dist_send
        module procedure f_dist_send
    end interface
    interface ctn_dist_recv
        module procedure f_dist_recv
    end interface
    interface ctn_dist_chain_new
        module procedure f_dist_chain_new
    end interface
    interface ctn_dist_chain_add
        module procedure f_dist_chain_add
    end interface
    interface ctn_dist_chain_recv
        module procedure f_dist_chain_recv
    end interface
    interface ctn_dist_chain_send
        module procedure f_dist_chain_send
    end interface
    interface ctn_dist_chain_call
        module procedure f_dist_chain_call
    end interface
    interface ctn_dist_grid_new
        module procedure f_dist_grid_new
    end interface
    interface ctn_dist_grid_length
        module procedure f_dist_grid_length
    end interface
    interface ctn_dist_grid_begin
        module procedure f_dist_grid_begin
    end interface
    interface ctn_dist_halo
        module procedure f_dist_halo
    end interface
    interface ctn_dist_field
        module procedure f_dist_field
    end interface
    interface ctn_env_count
        module procedure f_env_count
    end interface
    interface ctn_env_get
        module procedure f_env_get
    end interface
    interface ctn_generator_new
        module procedure f_generator_new
    end interface
    interface ctn_generator_next
        module procedure f_generator_next
    end interface
    interface ctn_generator_sequences
        module procedure f_generator_sequences
    end interface
    interface ctn_image_folder_open
        module procedure f_image_folder_open
    end interface
    interface ctn_image_list_open
        module procedure f_image_list_open
    end interface
    interface ctn_segmentation_open
        module procedure f_segmentation_open
    end interface
    interface ctn_shards_open
        module procedure f_shards_open
    end interface
    interface ctn_shards_pack
        module procedure f_shards_pack
    end interface
    interface ctn_augment_new
        module procedure f_augment_new
    end interface
    interface ctn_build_count
        module procedure f_build_count
    end interface
    interface ctn_build_get
        module procedure f_build_get
    end interface
    interface ctn_machine_get
        module procedure f_machine_get
    end interface
    interface ctn_weights_save
        module procedure f_weights_save
    end interface
    interface ctn_weights_save_with
        module procedure f_weights_save_with
    end interface
    interface ctn_weights_load
        module procedure f_weights_load
    end interface
    interface ctn_published_write
        module procedure f_published_write
    end interface
    interface ctn_lora_open
        module procedure f_lora_open
    end interface
    interface ctn_weights_open
        module procedure f_weights_open
    end interface
    interface ctn_weights_format
        module procedure f_weights_format
    end interface
    interface ctn_weights_arrays
        module procedure f_weights_arrays
    end interface
    interface ctn_weights_get_array
        module procedure f_weights_get_array
    end interface
    interface ctn_weights_find
        module procedure f_weights_find
    end interface
    interface ctn_weights_write
        module procedure f_weights_write
    end interface
    interface ctn_part_module
        module procedure f_part_module
    end interface
    interface ctn_part_optim
        module procedure f_part_optim
    end interface
    interface ctn_part_context
        module procedure f_part_context
    end interface
    interface ctn_part_loader
        module procedure f_part_loader
    end interface
    interface ctn_state_save
        module procedure f_state_save
    end interface
    interface ctn_state_load
        module procedure f_state_load
    end interface
    interface ctn_var_init
        module procedure f_var_init
    end interface
    interface ctn_module_new
        module procedure f_module_new
    end interface
    interface ctn_module_new_multi
        module procedure f_module_new_multi
    end interface
    interface ctn_module_add
        module procedure f_module_add
    end interface
    interface ctn_module_children
        module procedure f_module_children
    end interface
    interface ctn_module_child
        module procedure f_module_child
    end interface
    interface ctn_module_context
        module procedure f_module_context
    end interface
    interface ctn_module_predicts
        module procedure f_module_predicts
    end interface
    interface ctn_module_ends
        module procedure f_module_ends
    end interface
    interface ctn_module_param
        module procedure f_module_param
    end interface
    interface ctn_module_state
        module procedure f_module_state
    end interface
    interface ctn_module_tie
        module procedure f_module_tie
    end interface
    interface ctn_call
        module procedure f_call
    end interface
    interface ctn_call_multi
        module procedure f_call_multi
    end interface
    interface ctn_module_set_recompute
        module procedure f_module_set_recompute
    end interface
    interface ctn_module_source
        module procedure f_module_source
    end interface
    interface ctn_params
        module procedure f_params
    end interface
    interface ctn_module_find
        module procedure f_module_find
    end interface
    interface ctn_module_set_trainable
        module procedure f_module_set_trainable
    end interface
    interface ctn_module_freeze_statistics
        module procedure f_module_freeze_statistics
    end interface
    interface ctn_module_copy
        module procedure f_module_copy
    end interface
    interface ctn_module_share
        module procedure f_module_share
    end interface
    interface ctn_sequential_new
        module procedure f_sequential_new
    end interface
    interface ctn_module_list_new
        module procedure f_module_list_new
    end interface
    interface ctn_linear_new
        module procedure f_linear_new
    end interface
    interface ctn_conv_new
        module procedure f_conv_new
    end interface
    interface ctn_conv_transpose_new
        module procedure f_conv_transpose_new
    end interface
    interface ctn_deform_conv_new
        module procedure f_deform_conv_new
    end interface
    interface ctn_spectral_conv_new
        module procedure f_spectral_conv_new
    end interface
    interface ctn_batch_norm_new
        module procedure f_batch_norm_new
    end interface
    interface ctn_decorrelated_batch_norm_new
        module procedure f_decorrelated_batch_norm_new
    end interface
    interface ctn_batch_renorm_new
        module procedure f_batch_renorm_new
    end interface
    interface ctn_batch_renorm_set_limits
        module procedure f_batch_renorm_set_limits
    end interface
    interface ctn_group_norm_new
        module procedure f_group_norm_new
    end interface
    interface ctn_layer_norm_new
        module procedure f_layer_norm_new
    end interface
    interface ctn_rms_norm_new
        module procedure f_rms_norm_new
    end interface
    interface ctn_embedding_new
        module procedure f_embedding_new
    end interface
    interface ctn_lstm_new
        module procedure f_lstm_new
    end interface
    interface ctn_gru_new
        module procedure f_gru_new
    end interface
    interface ctn_rnn_new
        module procedure f_rnn_new
    end interface
    interface ctn_child_sum_tree_lstm_new
        module procedure f_child_sum_tree_lstm_new
    end interface
    interface ctn_nary_tree_lstm_new
        module procedure f_nary_tree_lstm_new
    end interface
    interface ctn_peephole_lstm_new
        module procedure f_peephole_lstm_new
    end interface
    interface ctn_crf_new
        module procedure f_crf_new
    end interface
    interface ctn_graph_conv_new
        module procedure f_graph_conv_new
    end interface
    interface ctn_graph_attention_new
        module procedure f_graph_attention_new
    end interface
    interface ctn_message_passing_new
        module procedure f_message_passing_new
    end interface
    interface ctn_dropout_new
        module procedure f_dropout_new
    end interface
    interface ctn_max_pool_new
        module procedure f_max_pool_new
    end interface
    interface ctn_avg_pool_new
        module procedure f_avg_pool_new
    end interface
    interface ctn_flatten_new
        module procedure f_flatten_new
    end interface
    interface ctn_inception_new
        module procedure f_inception_new
    end interface
    interface ctn_inception_bn_new
        module procedure f_inception_bn_new
    end interface
    interface ctn_activation_new
        module procedure f_activation_new
    end interface
    interface ctn_lora_add
        module procedure f_lora_add
    end interface
    interface ctn_lora_merge
        module procedure f_lora_merge
    end interface
    interface ctn_weight_norm_add
        module procedure f_weight_norm_add
    end interface
    interface ctn_spectral_norm_add
        module procedure f_spectral_norm_add
    end interface
    interface ctn_onnx_open
        module procedure f_onnx_open
    end interface
    interface ctn_onnx_inputs
        module procedure f_onnx_inputs
    end interface
    interface ctn_onnx_outputs
        module procedure f_onnx_outputs
    end interface
    interface ctn_onnx_input
        module procedure f_onnx_input
    end interface
    interface ctn_onnx_output
        module procedure f_onnx_output
    end interface
    interface ctn_onnx_run
        module procedure f_onnx_run
    end interface
    interface ctn_onnx_export
        module procedure f_onnx_export
    end interface
    interface ctn_onnx_export_module
        module procedure f_onnx_export_module
    end interface
    interface ctn_sgd_new
        module procedure f_sgd_new, f_sgd_new_module
    end interface
    interface ctn_adam_new
        module procedure f_adam_new, f_adam_new_module
    end interface
    interface ctn_adamw_new
        module procedure f_adamw_new, f_adamw_new_module
    end interface
    interface ctn_rmsprop_new
        module procedure f_rmsprop_new, f_rmsprop_new_module
    end interface
    interface ctn_adagrad_new
        module procedure f_adagrad_new, f_adagrad_new_module
    end interface
    interface ctn_adadelta_new
        module procedure f_adadelta_new, f_adadelta_new_module
    end interface
    interface ctn_adamax_new
        module procedure f_adamax_new, f_adamax_new_module
    end interface
    interface ctn_nadam_new
        module procedure f_nadam_new, f_nadam_new_module
    end interface
    interface ctn_radam_new
        module procedure f_radam_new, f_radam_new_module
    end interface
    interface ctn_lion_new
        module procedure f_lion_new, f_lion_new_module
    end interface
    interface ctn_lamb_new
        module procedure f_lamb_new, f_lamb_new_module
    end interface
    interface ctn_lars_new
        module procedure f_lars_new, f_lars_new_module
    end interface
    interface ctn_adabound_new
        module procedure f_adabound_new, f_adabound_new_module
    end interface
    interface ctn_smorms3_new
        module procedure f_smorms3_new, f_smorms3_new_module
    end interface
    interface ctn_msvag_new
        module procedure f_msvag_new, f_msvag_new_module
    end interface
    interface ctn_adafactor_new
        module procedure f_adafactor_new, f_adafactor_new_module
    end interface
    interface ctn_lbfgs_new
        module procedure f_lbfgs_new, f_lbfgs_new_module
    end interface
    interface ctn_backward
        module procedure f_backward
    end interface
    interface ctn_optim_step
        module procedure f_optim_step
    end interface
    interface ctn_optim_group
        module procedure f_optim_group
    end interface
    interface ctn_optim_lr
        module procedure f_optim_lr
    end interface
    interface ctn_optim_set_lr
        module procedure f_optim_set_lr
    end interface
    interface ctn_optim_hyper
        module procedure f_optim_hyper
    end interface
    interface ctn_optim_set_hyper
        module procedure f_optim_set_hyper
    end interface
    interface ctn_optim_set_clip
        module procedure f_optim_set_clip
    end interface
    interface ctn_optim_set_clip_value
        module procedure f_optim_set_clip_value
    end interface
    interface ctn_optim_set_lasso
        module procedure f_optim_set_lasso
    end interface
    interface ctn_optim_set_noise
        module procedure f_optim_set_noise
    end interface
    interface ctn_optim_set_skip_nonfinite
        module procedure f_optim_set_skip_nonfinite
    end interface
    interface ctn_optim_norm
        module procedure f_optim_norm
    end interface
    interface ctn_optim_steps
        module procedure f_optim_steps
    end interface
    interface ctn_optim_set_loss_scale
        module procedure f_optim_set_loss_scale
    end interface
    interface ctn_optim_loss_scale
        module procedure f_optim_loss_scale
    end interface
    interface ctn_optim_skipped
        module procedure f_optim_skipped
    end interface
    interface ctn_sched_factor
        module procedure f_sched_factor
    end interface
    interface ctn_optim_set_schedule
        module procedure f_optim_set_schedule
    end interface
    interface ctn_dtype_size
        module procedure f_dtype_size
    end interface
    interface ctn_dtype_name
        module procedure f_dtype_name
    end interface
    interface ctn_ndim
        module procedure f_ndim
    end interface
    interface ctn_dim
        module procedure f_dim
    end interface
    interface ctn_count
        module procedure f_count
    end interface
    interface ctn_dtype_of
        module procedure f_dtype_of
    end interface
    interface ctn_item
        module procedure f_item
    end interface
    interface ctn_tensor_text
        module procedure f_tensor_text
    end interface
    interface ctn_tokenizer_open
        module procedure f_tokenizer_open
    end interface
    interface ctn_tokenizer_encode
        module procedure f_tokenizer_encode
    end interface
    interface ctn_tokenizer_decode
        module procedure f_tokenizer_decode
    end interface
    interface ctn_tokenizer_decode_next
        module procedure f_tokenizer_decode_next
    end interface
    interface ctn_tokenizer_tokens
        module procedure f_tokenizer_tokens
    end interface
    interface ctn_tokenizer_token
        module procedure f_tokenizer_token
    end interface
    interface ctn_tokenizer_id
        module procedure f_tokenizer_id
    end interface
    interface ctn_tokenizer_special
        module procedure f_tokenizer_special
    end interface
    interface ctn_tokenizer_end
        module procedure f_tokenizer_end
    end interface
    interface ctn_tokenizer_around
        module procedure f_tokenizer_around
    end interface
    interface ctn_tokenizer_chat
        module procedure f_tokenizer_chat
    end interface
    interface ctn_tokens_pack
        module procedure f_tokens_pack
    end interface
    interface ctn_step_context
        module procedure f_step_context
    end interface
    interface ctn_step_batch
        module procedure f_step_batch
    end interface
    interface ctn_step_input
        module procedure f_step_input
    end interface
    interface ctn_report
        module procedure f_report
    end interface
    interface ctn_report_ratio
        module procedure f_report_ratio
    end interface
    interface ctn_report_weight
        module procedure f_report_weight
    end interface
    interface ctn_report_targets
        module procedure f_report_targets
    end interface
    interface ctn_report_metric
        module procedure f_report_metric
    end interface
    interface ctn_trainer_new
        module procedure f_trainer_new
    end interface
    interface ctn_trainer_add_optim
        module procedure f_trainer_add_optim
    end interface
    interface ctn_trainer_run
        module procedure f_trainer_run
    end interface
    interface ctn_trainer_stop
        module procedure f_trainer_stop
    end interface
    interface ctn_trainer_stopped
        module procedure f_trainer_stopped
    end interface
    interface ctn_trainer_progress
        module procedure f_trainer_progress
    end interface
    interface ctn_trainer_optim
        module procedure f_trainer_optim
    end interface
    interface ctn_trainer_loader
        module procedure f_trainer_loader
    end interface
    interface ctn_trainer_net
        module procedure f_trainer_net
    end interface
    interface ctn_trainer_out
        module procedure f_trainer_out
    end interface
    interface ctn_trainer_context
        module procedure f_trainer_context
    end interface
    interface ctn_trainer_observe
        module procedure f_trainer_observe
    end interface
    interface ctn_trainer_value
        module procedure f_trainer_value
    end interface
    interface ctn_trainer_name
        module procedure f_trainer_name
    end interface
    interface ctn_trainer_rows
        module procedure f_trainer_rows
    end interface
    interface ctn_trainer_row_value
        module procedure f_trainer_row_value
    end interface
    interface ctn_trainer_row_progress
        module procedure f_trainer_row_progress
    end interface
    interface ctn_extend_evaluator
        module procedure f_extend_evaluator
    end interface
    interface ctn_evaluate
        module procedure f_evaluate
    end interface
    interface ctn_extend_log
        module procedure f_extend_log
    end interface
    interface ctn_extend_progress
        module procedure f_extend_progress
    end interface
    interface ctn_extend_print
        module procedure f_extend_print
    end interface
    interface ctn_extend_plot
        module procedure f_extend_plot
    end interface
    interface ctn_extend_tensorboard
        module procedure f_extend_tensorboard
    end interface
    interface ctn_extend_html
        module procedure f_extend_html
    end interface
    interface ctn_extend_schedule
        module procedure f_extend_schedule
    end interface
    interface ctn_extend_plateau
        module procedure f_extend_plateau
    end interface
    interface ctn_extend_early_stop
        module procedure f_extend_early_stop
    end interface
    interface ctn_extend_observe
        module procedure f_extend_observe
    end interface
    interface ctn_extend_param_stats
        module procedure f_extend_param_stats
    end interface
    interface ctn_extend_param_plot
        module procedure f_extend_param_plot
    end interface
    interface ctn_extend_fail_on_nonfinite
        module procedure f_extend_fail_on_nonfinite
    end interface
    interface ctn_extend_on_nonfinite
        module procedure f_extend_on_nonfinite
    end interface
    interface ctn_extend_spikes
        module procedure f_extend_spikes
    end interface
    interface ctn_extend_unfreeze
        module procedure f_extend_unfreeze
    end interface
    interface ctn_extend_average
        module procedure f_extend_average
    end interface
    interface ctn_extend_swa
        module procedure f_extend_swa
    end interface
    interface ctn_extend_weights
        module procedure f_extend_weights
    end interface
    interface ctn_extend_replicas
        module procedure f_extend_replicas
    end interface
    interface ctn_extend_state
        module procedure f_extend_state
    end interface
    interface ctn_trainer_save
        module procedure f_trainer_save
    end interface
    interface ctn_trainer_load
        module procedure f_trainer_load
    end interface
    interface ctn_memory_new
        module procedure f_memory_new
    end interface
    interface ctn_extend_memory
        module procedure f_extend_memory
    end interface
    interface ctn_trainer_recall
        module procedure f_trainer_recall
    end interface
    interface ctn_states_prune
        module procedure f_states_prune
    end interface
    interface ctn_state_export
        module procedure f_state_export
    end interface
    interface ctn_tune_folder
        module procedure f_tune_folder
    end interface
    interface ctn_tune_clear
        module procedure f_tune_clear
    end interface
    interface ctn_zoo_new
        module procedure f_zoo_new
    end interface
    interface ctn_zoo_mlp
        module procedure f_zoo_mlp
    end interface
    interface ctn_zoo_lenet5
        module procedure f_zoo_lenet5
    end interface
    interface ctn_zoo_resnet
        module procedure f_zoo_resnet
    end interface
    interface ctn_zoo_resnet_cifar
        module procedure f_zoo_resnet_cifar
    end interface
    interface ctn_zoo_mobilenet_v2
        module procedure f_zoo_mobilenet_v2
    end interface
    interface ctn_zoo_vgg
        module procedure f_zoo_vgg
    end interface
    interface ctn_zoo_googlenet
        module procedure f_zoo_googlenet
    end interface
    interface ctn_zoo_unet
        module procedure f_zoo_unet
    end interface
    interface ctn_zoo_fno
        module procedure f_zoo_fno
    end interface
    interface ctn_zoo_gpt
        module procedure f_zoo_gpt
    end interface
    interface ctn_zoo_llama
        module procedure f_zoo_llama
    end interface
    interface ctn_zoo_bert
        module procedure f_zoo_bert
    end interface
    interface ctn_zoo_vit
        module procedure f_zoo_vit
    end interface
    interface ctn_zoo_seq2seq
        module procedure f_zoo_seq2seq
    end interface
    interface ctn_zoo_gcn
        module procedure f_zoo_gcn
    end interface
    interface ctn_zoo_gat
        module procedure f_zoo_gat
    end interface
    interface ctn_zoo_meshgraphnet
        module procedure f_zoo_meshgraphnet
    end interface
    interface ctn_zoo_open
        module procedure f_zoo_open
    end interface
    interface ctn_comm_free
        module procedure f_comm_free
    end interface
    interface ctn_retained_free
        module procedure f_retained_free
    end interface
    interface ctn_dataset_free
        module procedure f_dataset_free
    end interface
    interface ctn_sampler_free
        module procedure f_sampler_free
    end interface
    interface ctn_loader_free
        module procedure f_loader_free
    end interface
    interface ctn_dist_chain_free
        module procedure f_dist_chain_free
    end interface
    interface ctn_dist_grid_free
        module procedure f_dist_grid_free
    end interface
    interface ctn_generator_free
        module procedure f_generator_free
    end interface
    interface ctn_weights_free
        module procedure f_weights_free
    end interface
    interface ctn_module_free
        module procedure f_module_free
    end interface
    interface ctn_optim_free
        module procedure f_optim_free
    end interface
    interface ctn_context_free
        module procedure f_context_free
    end interface
    interface ctn_var_free
        module procedure f_var_free
    end interface
    interface ctn_tokenizer_free
        module procedure f_tokenizer_free
    end interface
    interface ctn_trainer_free
        module procedure f_trainer_free
    end interface
    interface ctn_memory_free
        module procedure f_memory_free
    end interface
    interface ctn_trainer_extend
        module procedure f_trainer_extend
    end interface

contains

    recursive function f_status_text(st) result(res)
        integer(c_int), intent(in) :: st
        character(:), allocatable :: res
        res = text_of(c_status_text(st))
    end function

    recursive function f_error_status() result(res)
        integer(c_int) :: res
        res = c_error_status()
    end function

    recursive function f_error_trace(st, file, line, func) result(res)
        integer(c_int), intent(in) :: st
        character(*), intent(in) :: file
        integer, intent(in) :: line
        character(*), intent(in) :: func
        integer(c_int) :: res
        res = c_error_trace(st, chars(file), int(line, c_int), chars(func))
    end function

    recursive function f_version() result(res)
        integer(c_int) :: res
        res = c_version()
    end function

    recursive function f_version_text() result(res)
        character(:), allocatable :: res
        res = text_of(c_version_text())
    end function

    recursive subroutine f_set_allocator(a, stat, errmsg)
        type(ctn_allocator), intent(in), optional :: a
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_set_allocator(a)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_allocations() result(res)
        integer(c_int64_t) :: res
        res = c_allocations()
    end function

    recursive subroutine f_mpi_init(stat, errmsg)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_mpi_init(c_null_ptr, c_null_ptr)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_mpi_finalize(stat, errmsg)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_mpi_finalize()
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_open(out, algorithm, wire, rows, segment, window, stat, errmsg)
        type(ctn_comm), intent(inout) :: out
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_open(out_, opt_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_comm_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_loopback(out, algorithm, wire, rows, segment, window, stat, errmsg)
        type(ctn_comm), intent(inout) :: out(:)
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_(ubound(out, 1))
        integer :: i_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_loopback(out_, ubound(out, 1, kind=c_int), opt_)
        if (st_ >= 0) then
            do i_ = 1, ubound(out, 1)
                call own(out(i_), out_(i_)%p, c_funloc(c_comm_free))
            end do
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_from_mpi(out, handle, algorithm, wire, rows, segment, window, &
                stat, errmsg)
        type(ctn_comm), intent(inout) :: out
        integer, intent(in) :: handle
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_adopt_fortran(out_, int(handle, c_int), opt_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_comm_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_comm_rank(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_rank(c_comm(address_of(c)))
    end function

    recursive function f_comm_size(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_size(c_comm(address_of(c)))
    end function

    recursive function f_comm_nodes(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_nodes(c_comm(address_of(c)))
    end function

    recursive function f_comm_node(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_node(c_comm(address_of(c)))
    end function

    recursive function f_comm_local_rank(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_local_rank(c_comm(address_of(c)))
    end function

    recursive function f_comm_local_size(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_local_size(c_comm(address_of(c)))
    end function

    recursive function f_comm_transport(c) result(res)
        class(ctn_comm), intent(in) :: c
        character(:), allocatable :: res
        res = text_of(c_comm_transport(c_comm(address_of(c))))
    end function

    recursive function f_comm_algorithm(c) result(res)
        class(ctn_comm), intent(in) :: c
        character(:), allocatable :: res
        res = text_of(c_comm_algorithm(c_comm(address_of(c))))
    end function

    recursive function f_comm_algorithm_name(i) result(res)
        integer, intent(in) :: i
        character(:), allocatable :: res
        res = text_of(c_comm_algorithm_name(int(i, c_int)))
    end function

    recursive subroutine f_comm_set_algorithm(c, name, stat, errmsg)
        class(ctn_comm), intent(in) :: c
        character(*), intent(in) :: name
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_comm_set_algorithm(c_comm(address_of(c)), chars(name))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_recv_size(c, from, bytes, stat, errmsg)
        class(ctn_comm), intent(in) :: c
        integer, intent(in) :: from
        integer(c_size_t), intent(out) :: bytes
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_comm_recv_size(c_comm(address_of(c)), int(from, c_int), bytes)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_barrier(c, stat, errmsg)
        class(ctn_comm), intent(in) :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_comm_barrier(c_comm(address_of(c)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_agree(c, text, stat, errmsg)
        class(ctn_comm), intent(in) :: c
        character(*), intent(in) :: text
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_comm_agree(c_comm(address_of(c)), chars(text))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_fail(c, message)
        class(ctn_comm), intent(in) :: c
        character(*), intent(in) :: message
        call c_comm_fail(c_comm(address_of(c)), chars(message))
    end subroutine

    recursive subroutine f_comm_break(c, message)
        class(ctn_comm), intent(in) :: c
        character(*), intent(in) :: message
        call c_comm_break(c_comm(address_of(c)), chars(message))
    end subroutine

    recursive function f_comm_survives(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_survives(c_comm(address_of(c)))
    end function

    recursive function f_comm_lost(c) result(res)
        class(ctn_comm), intent(in) :: c
        integer(c_int) :: res
        res = c_comm_lost(c_comm(address_of(c)))
    end function

    recursive subroutine f_comm_shrink(out, c, algorithm, wire, rows, segment, window, stat, errmsg)
        type(ctn_comm), intent(inout) :: out
        type(ctn_comm), intent(in) :: c
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_shrink(out_, c_comm(address_of(c)), opt_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_comm_free))
            call need(out, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_again(out, c, algorithm, wire, rows, segment, window, stat, errmsg)
        type(ctn_comm), intent(inout) :: out
        type(ctn_comm), intent(in) :: c
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_again(out_, c_comm(address_of(c)), opt_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_comm_free))
            call need(out, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_split(out, c, color, key, algorithm, wire, rows, segment, window, &
                stat, errmsg)
        type(ctn_comm), intent(inout) :: out
        type(ctn_comm), intent(in) :: c
        integer, intent(in) :: color
        integer, intent(in) :: key
        character(*), intent(in), optional :: algorithm
        integer(c_int), intent(in), optional :: wire
        integer, intent(in), optional :: rows
        integer, intent(in), optional :: segment
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: out_
        type(ctn_comm_opt) :: opt_
        type(texts), target :: algorithm_
        integer(c_int) :: st_
        if (present(algorithm)) then
            call algorithm_%set([algorithm])
            opt_%algorithm = algorithm_%p(1)
        end if
        if (present(wire)) opt_%wire = wire
        if (present(rows)) opt_%rows = rows
        if (present(segment)) opt_%segment = segment
        if (present(window)) opt_%window = window
        st_ = c_comm_split(out_, c_comm(address_of(c)), int(color, c_int), int(key, c_int), opt_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_comm_free))
            call need(out, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_comm_get_stats(c, out)
        class(ctn_comm), intent(in) :: c
        type(ctn_comm_stats), intent(inout) :: out
        call c_comm_get_stats(c_comm(address_of(c)), out)
    end subroutine

    recursive subroutine f_context_new(ctx, threads, seed, mode, precision, slow_precision, &
                no_fuse, max_plans, max_plan_bytes, cores, spans, stat, errmsg)
        type(ctn_context), intent(inout) :: ctx
        integer, intent(in), optional :: threads
        integer, intent(in), optional :: seed
        integer(c_int), intent(in), optional :: mode
        integer(c_int), intent(in), optional :: precision
        integer, intent(in), optional :: slow_precision
        integer, intent(in), optional :: no_fuse
        integer, intent(in), optional :: max_plans
        integer(c_int64_t), intent(in), optional :: max_plan_bytes
        integer, intent(in), optional :: cores(:)
        integer, intent(in), optional :: spans
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_context) :: ctx_
        type(ctn_context_opt) :: opt_
        integer(c_int), allocatable, target :: cores_(:)
        integer(c_int) :: st_
        if (present(threads)) opt_%threads = threads
        if (present(seed)) opt_%seed = seed
        if (present(mode)) opt_%mode = mode
        if (present(precision)) opt_%precision = precision
        if (present(slow_precision)) opt_%slow_precision = slow_precision
        if (present(no_fuse)) opt_%no_fuse = no_fuse
        if (present(max_plans)) opt_%max_plans = max_plans
        if (present(max_plan_bytes)) opt_%max_plan_bytes = max_plan_bytes
        if (present(cores)) then
            allocate (cores_, source=int(cores, c_int))
            opt_%cores = c_loc(cores_)
            opt_%ncores = ubound(cores, 1)
        end if
        if (present(spans)) opt_%spans = spans
        st_ = c_context_new(ctx_, opt_)
        if (st_ >= 0) then
            call own(ctx, ctx_%p, c_funloc(c_context_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_context_threads(ctx) result(res)
        class(ctn_context), intent(in) :: ctx
        integer(c_int) :: res
        res = c_context_threads(c_context(address_of(ctx)))
    end function

    recursive function f_context_float_type(ctx) result(res)
        class(ctn_context), intent(in) :: ctx
        integer(c_int) :: res
        res = c_context_float_type(c_context(address_of(ctx)))
    end function

    recursive subroutine f_context_get_state(ctx, out)
        class(ctn_context), intent(in) :: ctx
        type(ctn_context_state), intent(inout) :: out
        call c_context_get_state(c_context(address_of(ctx)), out)
    end subroutine

    recursive subroutine f_context_set_state(ctx, in, stat, errmsg)
        class(ctn_context), intent(in) :: ctx
        type(ctn_context_state), intent(in) :: in
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_context_set_state(c_context(address_of(ctx)), in)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_context_set_share(ctx, share, stat, errmsg)
        class(ctn_context), intent(in) :: ctx
        type(ctn_share), intent(in) :: share
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_context_set_share(c_context(address_of(ctx)), share)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_scope_begin(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_scope_begin(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_scope_end(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_scope_end(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_scope_return(ctx, t, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_scope_return(c_context(address_of(ctx)), t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_scope_return_n(ctx, t, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        type(ctn_tensor), intent(in) :: t(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_scope_return_n(c_context(address_of(ctx)), ubound(t, 1, kind=c_int), t)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_context_set_training(ctx, on) result(res)
        class(ctn_context), intent(in) :: ctx
        integer, intent(in) :: on
        integer(c_int) :: res
        res = c_context_set_training(c_context(address_of(ctx)), int(on, c_int))
    end function

    recursive function f_context_set_grad(ctx, on) result(res)
        class(ctn_context), intent(in) :: ctx
        integer, intent(in) :: on
        integer(c_int) :: res
        res = c_context_set_grad(c_context(address_of(ctx)), int(on, c_int))
    end function

    recursive function f_context_training(ctx) result(res)
        class(ctn_context), intent(in) :: ctx
        integer(c_int) :: res
        res = c_context_training(c_context(address_of(ctx)))
    end function

    recursive function f_number(ctx, value, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in) :: value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_number(c_loc(here), c_context(address_of(ctx)), value)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_keep(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_keep(t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_keep_graph(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_keep_graph(t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_retain(r, t, stat, errmsg)
        type(ctn_retained), intent(inout) :: r
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_retained) :: r_
        integer(c_int) :: st_
        r_ = c_retained(address_of(r))
        st_ = c_retain(r_, t)
        if (st_ >= 0) then
            if (.not. c_associated(address_of(r))) &
                call own(r, r_%p, c_funloc(c_retained_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_retained_value(r, stat, errmsg) result(res)
        class(ctn_retained), intent(in) :: r
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_retained_value(c_loc(here), c_retained(address_of(r)))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_recompute_begin(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_recompute_begin(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_recompute_end(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_recompute_end(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_detach(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_detach(c_loc(here), t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_grad(y, xs, gxs, stat, errmsg)
        type(ctn_tensor), intent(in) :: y
        type(ctn_tensor), intent(in) :: xs(:)
        type(ctn_tensor), intent(inout) :: gxs(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'grad: gxs', &
            ubound(gxs, 1, c_int64_t), ubound(xs, 1, c_int64_t), &
            'as many as xs')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_grad(c_loc(here), y, ubound(xs, 1, kind=c_int), xs, gxs)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_with_grad(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_with_grad(t)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_var_new(v, ctx, name, kind, dtype, dims, stat, errmsg)
        type(ctn_var), intent(inout) :: v
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: kind
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_var) :: v_
        integer(c_int) :: st_
        st_ = c_var_new(v_, c_context(address_of(ctx)), chars(name), kind, dtype, ubound(dims, 1, &
                kind=c_int), int(dims, c_int64_t))
        if (st_ >= 0) then
            call own(v, v_%p, c_funloc(c_var_free))
            call need(v, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_var_name(v) result(res)
        class(ctn_var), intent(in) :: v
        character(:), allocatable :: res
        res = text_of(c_var_name(c_var(address_of(v))))
    end function

    recursive function f_var_desc(v) result(res)
        class(ctn_var), intent(in) :: v
        type(ctn_desc) :: res
        type(c_ptr) :: p_
        type(ctn_desc), pointer :: found_
        p_ = c_var_desc(c_var(address_of(v)))
        if (.not. c_associated(p_)) return
        call c_f_pointer(p_, found_)
        res = found_
    end function

    recursive function f_var_kind_of(v) result(res)
        class(ctn_var), intent(in) :: v
        integer(c_int) :: res
        res = c_var_kind_of(c_var(address_of(v)))
    end function

    recursive subroutine f_var_set_trainable(v, on)
        class(ctn_var), intent(in) :: v
        integer, intent(in) :: on
        call c_var_set_trainable(c_var(address_of(v)), int(on, c_int))
    end subroutine

    recursive function f_var_trainable(v) result(res)
        class(ctn_var), intent(in) :: v
        integer(c_int) :: res
        res = c_var_trainable(c_var(address_of(v)))
    end function

    recursive subroutine f_var_context(v, found)
        class(ctn_var), intent(in) :: v
        type(ctn_context), intent(inout) :: found
        type(c_context) :: found_
        found_ = c_var_context(c_var(address_of(v)))
        call borrow(found, found_%p, v)
    end subroutine

    recursive function f_use(v, stat, errmsg) result(res)
        type(ctn_var), intent(in) :: v
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_use(c_loc(here), c_var(address_of(v)))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_assign(v, t, stat, errmsg)
        type(ctn_var), intent(in) :: v
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_assign(c_loc(here), c_var(address_of(v)), t)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_flush(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_flush(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_context_get_stats(ctx, out)
        class(ctn_context), intent(in) :: ctx
        type(ctn_plan_stats), intent(inout) :: out
        call c_context_get_stats(c_context(address_of(ctx)), out)
    end subroutine

    recursive function f_context_plan_text(ctx) result(res)
        class(ctn_context), intent(in) :: ctx
        character(:), allocatable :: res
        integer(c_int) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_context_plan_text(c_context(address_of(ctx)), buf_, ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_context_plan_text(c_context(address_of(ctx)), buf_, ubound(buf_, 1, &
                kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
    end function

    recursive function f_context_decisions_text(ctx, stat, errmsg) result(res)
        class(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        integer(c_int) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_context_decisions_text(c_context(address_of(ctx)), buf_, ubound(buf_, 1, &
                kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_context_decisions_text(c_context(address_of(ctx)), buf_, ubound(buf_, 1, &
                kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive subroutine f_context_write_trace(ctx, path, stat, errmsg)
        class(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_context_write_trace(c_context(address_of(ctx)), chars(path))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_context_set_profile(ctx, on)
        class(ctn_context), intent(in) :: ctx
        integer, intent(in) :: on
        call c_context_set_profile(c_context(address_of(ctx)), int(on, c_int))
    end subroutine

    recursive function f_dataset_count(ds) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer(c_int64_t) :: res
        res = c_dataset_count(c_dataset(address_of(ds)))
    end function

    recursive function f_dataset_fields(ds) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer(c_int) :: res
        res = c_dataset_fields(c_dataset(address_of(ds)))
    end function

    recursive function f_dataset_field(ds, f) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: f
        type(ctn_field) :: res
        type(c_ptr) :: p_
        type(ctn_field), pointer :: found_
        p_ = c_dataset_field(c_dataset(address_of(ds)), int(f, c_int))
        if (.not. c_associated(p_)) return
        call c_f_pointer(p_, found_)
        res = found_
    end function

    recursive function f_dataset_length(ds, f, index) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: f
        integer, intent(in) :: index
        integer(c_int64_t) :: res
        res = c_dataset_length(c_dataset(address_of(ds)), int(f, c_int), int(index, c_int64_t))
    end function

    recursive function f_dataset_name(ds, index) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: index
        character(:), allocatable :: res
        integer(c_int) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_dataset_name(c_dataset(address_of(ds)), int(index, c_int64_t), buf_, ubound(buf_, &
                1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_dataset_name(c_dataset(address_of(ds)), int(index, c_int64_t), buf_, &
                ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
    end function

    recursive function f_dataset_class(ds, k) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: k
        character(:), allocatable :: res
        res = text_of(c_dataset_class(c_dataset(address_of(ds)), int(k, c_int64_t)))
    end function

    recursive function f_dataset_classes(ds) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer(c_int64_t) :: res
        res = c_dataset_classes(c_dataset(address_of(ds)))
    end function

    recursive function f_dataset_resizes(ds) result(res)
        class(ctn_dataset), intent(in) :: ds
        integer(c_int) :: res
        res = c_dataset_resizes(c_dataset(address_of(ds)))
    end function

    recursive subroutine f_idx_open(ds, images_path, labels_path, raw, shaped, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: images_path
        character(*), intent(in), optional :: labels_path
        integer, intent(in), optional :: raw
        integer, intent(in), optional :: shaped
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        character(kind=c_char), allocatable :: labels_path_(:)
        type(ctn_idx_opt) :: opt_
        integer(c_int) :: st_
        call set_chars(labels_path_, labels_path)
        if (present(raw)) opt_%raw = raw
        if (present(shaped)) opt_%shaped = shaped
        st_ = c_idx_open(ds_, chars(images_path), labels_path_, opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_mnist_open(ds, dir, split, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: dir
        integer(c_int), intent(in) :: split
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        integer(c_int) :: st_
        st_ = c_mnist_open(ds_, chars(dir), split)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_cifar10_open(ds, dir, split, raw, mean, std, coarse, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: dir
        integer(c_int), intent(in) :: split
        integer, intent(in), optional :: raw
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: coarse
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_cifar_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(raw)) opt_%raw = raw
        ok_ = .true.
        if (present(mean)) call fill(ok_, 'cifar10_open: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'cifar10_open: std', &
            opt_%std, std)
        if (present(coarse)) opt_%coarse = coarse
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_cifar10_open(ds_, chars(dir), split, opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_cifar100_open(ds, dir, split, raw, mean, std, coarse, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: dir
        integer(c_int), intent(in) :: split
        integer, intent(in), optional :: raw
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: coarse
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_cifar_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(raw)) opt_%raw = raw
        ok_ = .true.
        if (present(mean)) call fill(ok_, 'cifar100_open: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'cifar100_open: std', &
            opt_%std, std)
        if (present(coarse)) opt_%coarse = coarse
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_cifar100_open(ds_, chars(dir), split, opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_svhn_open(ds, dir, split, raw, mean, std, coarse, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: dir
        integer(c_int), intent(in) :: split
        integer, intent(in), optional :: raw
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: coarse
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_cifar_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(raw)) opt_%raw = raw
        ok_ = .true.
        if (present(mean)) call fill(ok_, 'svhn_open: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'svhn_open: std', &
            opt_%std, std)
        if (present(coarse)) opt_%coarse = coarse
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_svhn_open(ds_, chars(dir), split, opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_sequential(s, count, stat, errmsg)
        type(ctn_sampler), intent(inout) :: s
        integer, intent(in) :: count
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_sampler) :: s_
        integer(c_int) :: st_
        st_ = c_sampler_sequential(s_, int(count, c_int64_t))
        if (st_ >= 0) then
            call own(s, s_%p, c_funloc(c_sampler_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_shuffled(s, count, seed, stat, errmsg)
        type(ctn_sampler), intent(inout) :: s
        integer, intent(in) :: count
        integer, intent(in) :: seed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_sampler) :: s_
        integer(c_int) :: st_
        st_ = c_sampler_shuffled(s_, int(count, c_int64_t), int(seed, c_int64_t))
        if (st_ >= 0) then
            call own(s, s_%p, c_funloc(c_sampler_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_weighted(s, weight, seed, stat, errmsg)
        type(ctn_sampler), intent(inout) :: s
        real(c_double), intent(in) :: weight(:)
        integer, intent(in) :: seed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_sampler) :: s_
        integer(c_int) :: st_
        st_ = c_sampler_weighted(s_, ubound(weight, 1, kind=c_int64_t), weight, int(seed, &
                c_int64_t))
        if (st_ >= 0) then
            call own(s, s_%p, c_funloc(c_sampler_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_bucketed(s, length, batch, seed, stat, errmsg)
        type(ctn_sampler), intent(inout) :: s
        integer, intent(in) :: length(:)
        integer, intent(in) :: batch
        integer, intent(in) :: seed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_sampler) :: s_
        integer(c_int) :: st_
        st_ = c_sampler_bucketed(s_, ubound(length, 1, kind=c_int64_t), int(length, c_int64_t), &
                int(batch, c_int64_t), int(seed, c_int64_t))
        if (st_ >= 0) then
            call own(s, s_%p, c_funloc(c_sampler_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_new(s, count, fn, seed, stat, errmsg)
        type(ctn_sampler), intent(inout) :: s
        integer, intent(in) :: count
        class(ctn_order), intent(inout), target :: fn
        integer, intent(in) :: seed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_sampler) :: s_
        type(holder), pointer :: fn_
        integer(c_int) :: st_
        allocate (fn_)
        fn_%it => fn
        st_ = c_sampler_new(s_, int(count, c_int64_t), c_funloc(call_order), c_loc(fn_), int(seed, &
                c_int64_t))
        if (st_ >= 0) then
            call own(s, s_%p, c_funloc(c_sampler_free))
            call keep(s, fn_)
        end if
        if (st_ < 0) then
            deallocate (fn_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sampler_shard(s, rank, size, stat, errmsg)
        class(ctn_sampler), intent(in) :: s
        integer, intent(in) :: rank
        integer, intent(in) :: size
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_sampler_shard(c_sampler(address_of(s)), int(rank, c_int), int(size, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_sampler_count(s) result(res)
        class(ctn_sampler), intent(in) :: s
        integer(c_int64_t) :: res
        res = c_sampler_count(c_sampler(address_of(s)))
    end function

    recursive function f_sampler_total(s) result(res)
        class(ctn_sampler), intent(in) :: s
        integer(c_int64_t) :: res
        res = c_sampler_total(c_sampler(address_of(s)))
    end function

    recursive function f_sampler_index(s, epoch, position) result(res)
        class(ctn_sampler), intent(in) :: s
        integer, intent(in) :: epoch
        integer, intent(in) :: position
        integer(c_int64_t) :: res
        res = c_sampler_index(c_sampler(address_of(s)), int(epoch, c_int64_t), int(position, &
                c_int64_t))
    end function

    recursive function f_sampler_get_state(s) result(res)
        class(ctn_sampler), intent(in) :: s
        type(ctn_sampler_state) :: res
        res = c_sampler_get_state(c_sampler(address_of(s)))
    end function

    recursive subroutine f_sampler_set_state(s, state, stat, errmsg)
        class(ctn_sampler), intent(in) :: s
        type(ctn_sampler_state), intent(in) :: state
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_sampler_set_state(c_sampler(address_of(s)), state)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_loader_new(l, ds, s, batch, threads, depth, drop_last, skip, stall_s, &
                cores, mix, pad_multiple, pad_value, total, block, join, join_index, sizes, &
                size_every, stat, errmsg)
        type(ctn_loader), intent(inout) :: l
        type(ctn_dataset), intent(in) :: ds
        type(ctn_sampler), intent(in) :: s
        integer, intent(in), optional :: batch
        integer, intent(in), optional :: threads
        integer, intent(in), optional :: depth
        integer, intent(in), optional :: drop_last
        real(c_double), intent(in), optional :: skip
        real(c_double), intent(in), optional :: stall_s
        integer, intent(in), optional :: cores(:)
        type(ctn_mix_opt), intent(in), target, optional :: mix
        integer, intent(in), optional :: pad_multiple
        real(c_double), intent(in), optional :: pad_value(:)
        integer, intent(in), optional :: total
        integer, intent(in), optional :: block
        integer, intent(in), optional :: join
        integer, intent(in), optional :: join_index
        integer, intent(in), optional :: sizes(:)
        integer, intent(in), optional :: size_every
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_loader) :: l_
        type(ctn_loader_opt) :: opt_
        integer(c_int), allocatable, target :: cores_(:)
        logical :: ok_
        integer(c_int64_t), allocatable, target :: sizes_(:)
        integer(c_int) :: st_
        if (present(batch)) opt_%batch = batch
        if (present(threads)) opt_%threads = threads
        if (present(depth)) opt_%depth = depth
        if (present(drop_last)) opt_%drop_last = drop_last
        if (present(skip)) opt_%skip = skip
        if (present(stall_s)) opt_%stall_s = stall_s
        if (present(cores)) then
            allocate (cores_, source=int(cores, c_int))
            opt_%cores = c_loc(cores_)
            opt_%ncores = ubound(cores, 1)
        end if
        if (present(mix)) opt_%mix = c_loc(mix)
        if (present(pad_multiple)) opt_%pad_multiple = pad_multiple
        ok_ = .true.
        if (present(pad_value)) call fill(ok_, 'loader_new: pad_value', &
            opt_%pad_value, pad_value)
        if (present(total)) opt_%total = total
        if (present(block)) opt_%block = block
        if (present(join)) opt_%join = join
        if (present(join_index)) opt_%join_index = join_index
        if (present(sizes)) then
            allocate (sizes_, source=int(sizes, c_int64_t))
            opt_%sizes = c_loc(sizes_)
            opt_%nsizes = ubound(sizes, 1)
        end if
        if (present(size_every)) opt_%size_every = size_every
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_loader_new(l_, c_dataset(address_of(ds)), c_sampler(address_of(s)), opt_)
        if (st_ >= 0) then
            call own(l, l_%p, c_funloc(c_loader_free))
            call need(l, ds)
            call need(l, s)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_loader_next(l, b, stat, errmsg)
        class(ctn_loader), intent(in) :: l
        type(ctn_batch), intent(inout) :: b
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_loader_next(c_loader(address_of(l)), b)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_batch_tensor(ctx, b, field, stat, errmsg) result(res)
        type(ctn_context), intent(in) :: ctx
        type(ctn_batch), intent(in) :: b
        integer, intent(in) :: field
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_batch_tensor(c_loc(here), c_context(address_of(ctx)), b, int(field, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_loader_get_stats(l, out)
        class(ctn_loader), intent(in) :: l
        type(ctn_loader_stats), intent(inout) :: out
        call c_loader_get_stats(c_loader(address_of(l)), out)
    end subroutine

    recursive function f_loader_get_state(l) result(res)
        class(ctn_loader), intent(in) :: l
        type(ctn_sampler_state) :: res
        res = c_loader_get_state(c_loader(address_of(l)))
    end function

    recursive subroutine f_loader_set_state(l, state, stat, errmsg)
        class(ctn_loader), intent(in) :: l
        type(ctn_sampler_state), intent(in) :: state
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_loader_set_state(c_loader(address_of(l)), state)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_files_open(ds, path, keep_f64, offsets, fill, fill_value, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path(:)
        integer, intent(in), optional :: keep_f64
        character(*), intent(in), optional :: offsets(:)
        integer, intent(in), optional :: fill
        real(c_double), intent(in), optional :: fill_value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(texts), target :: path_
        type(ctn_files_opt) :: opt_
        type(texts), target :: offsets_
        integer(c_int) :: st_
        call path_%set(path)
        if (present(keep_f64)) opt_%keep_f64 = keep_f64
        if (present(offsets)) then
            call offsets_%set(offsets)
            opt_%offsets = c_loc(offsets_%p)
        end if
        if (present(fill)) opt_%fill = fill
        if (present(fill_value)) opt_%fill_value = fill_value
        st_ = c_files_open(ds_, ubound(path, 1, kind=c_int), path_%p, opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_csv_open(ds, path, separator, no_header, ninputs, ntargets, inputs, &
                targets, keep_f64, classes, categories, text_target, fill, fill_value, like, stat, &
                errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path
        character(*), intent(in), optional :: separator
        integer, intent(in), optional :: no_header
        integer, intent(in), optional :: ninputs
        integer, intent(in), optional :: ntargets
        character(*), intent(in), optional :: inputs(:)
        character(*), intent(in), optional :: targets(:)
        integer, intent(in), optional :: keep_f64
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: categories
        integer, intent(in), optional :: text_target
        integer, intent(in), optional :: fill
        real(c_double), intent(in), optional :: fill_value
        type(ctn_dataset), intent(in), optional :: like
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_csv_opt) :: opt_
        type(texts), target :: separator_
        type(texts), target :: inputs_
        type(texts), target :: targets_
        integer(c_int) :: st_
        if (present(separator)) then
            call separator_%set([separator])
            opt_%separator = separator_%p(1)
        end if
        if (present(no_header)) opt_%no_header = no_header
        if (present(ninputs)) opt_%ninputs = ninputs
        if (present(ntargets)) opt_%ntargets = ntargets
        if (present(inputs)) then
            call inputs_%set(inputs)
            opt_%inputs = c_loc(inputs_%p)
        end if
        if (present(targets)) then
            call targets_%set(targets)
            opt_%targets = c_loc(targets_%p)
        end if
        if (present(keep_f64)) opt_%keep_f64 = keep_f64
        if (present(classes)) opt_%classes = classes
        if (present(categories)) opt_%categories = categories
        if (present(text_target)) opt_%text_target = text_target
        if (present(fill)) opt_%fill = fill
        if (present(fill_value)) opt_%fill_value = fill_value
        if (present(like)) opt_%like = c_dataset(address_of(like))
        st_ = c_csv_open(ds_, chars(path), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            if (present(like)) call need(ds, like)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_csv_column(ds, field, k) result(res)
        type(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: field
        integer, intent(in) :: k
        character(:), allocatable :: res
        res = text_of(c_csv_column(c_dataset(address_of(ds)), int(field, c_int), int(k, c_int64_t)))
    end function

    recursive subroutine f_tokens_open(ds, path, length, stride, bytes, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path
        integer, intent(in), optional :: length
        integer, intent(in), optional :: stride
        integer, intent(in), optional :: bytes
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_tokens_opt) :: opt_
        integer(c_int) :: st_
        if (present(length)) opt_%length = length
        if (present(stride)) opt_%stride = stride
        if (present(bytes)) opt_%bytes = bytes
        st_ = c_tokens_open(ds_, chars(path), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_text_lines_open(ds, path, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(texts), target :: path_
        integer(c_int) :: st_
        call path_%set(path)
        st_ = c_text_lines_open(ds_, ubound(path, 1, kind=c_int), path_%p)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_slice(ds, base, first, count, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        integer, intent(in) :: first
        integer, intent(in) :: count
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        integer(c_int) :: st_
        st_ = c_dataset_slice(ds_, c_dataset(address_of(base)), int(first, c_int64_t), int(count, &
                c_int64_t))
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call need(ds, base)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_subset(ds, base, index, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        integer, intent(in) :: index(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        integer(c_int) :: st_
        st_ = c_dataset_subset(ds_, c_dataset(address_of(base)), ubound(index, 1, kind=c_int64_t), &
                int(index, c_int64_t))
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call need(ds, base)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_split(first, second, base, share, seed, stat, errmsg)
        type(ctn_dataset), intent(inout) :: first
        type(ctn_dataset), intent(inout) :: second
        type(ctn_dataset), intent(in) :: base
        real(c_double), intent(in) :: share
        integer, intent(in) :: seed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: first_
        type(c_dataset) :: second_
        integer(c_int) :: st_
        st_ = c_dataset_split(first_, second_, c_dataset(address_of(base)), share, int(seed, &
                c_int64_t))
        if (st_ >= 0) then
            call own(first, first_%p, c_funloc(c_dataset_free))
            call need(first, base)
            call own(second, second_%p, c_funloc(c_dataset_free))
            call need(second, base)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_concat(ds, parts, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: parts(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(c_dataset) :: parts_(ubound(parts, 1))
        integer :: i_
        integer(c_int) :: st_
        do i_ = 1, ubound(parts, 1)
            parts_(i_) = c_dataset(address_of(parts(i_)))
        end do
        st_ = c_dataset_concat(ds_, ubound(parts, 1, kind=c_int), parts_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            do i_ = 1, ubound(parts, 1)
                call give(parts(i_), ds)
            end do
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_relabel(ds, base, name, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        character(*), intent(in) :: name(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(texts), target :: name_
        integer(c_int) :: st_
        call name_%set(name)
        st_ = c_dataset_relabel(ds_, c_dataset(address_of(base)), ubound(name, 1, kind=c_int64_t), &
                name_%p)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call give(base, ds)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_mask(ds, base, t, chosen, masked, random, mask, begin, end, &
                stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        type(ctn_tokenizer), intent(in) :: t
        real(c_double), intent(in), optional :: chosen
        real(c_double), intent(in), optional :: masked
        real(c_double), intent(in), optional :: random
        character(*), intent(in), optional :: mask
        character(*), intent(in), optional :: begin
        character(*), intent(in), optional :: end
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_mask_opt) :: opt_
        type(texts), target :: mask_
        type(texts), target :: begin_
        type(texts), target :: end_
        integer(c_int) :: st_
        if (present(chosen)) opt_%chosen = chosen
        if (present(masked)) opt_%masked = masked
        if (present(random)) opt_%random = random
        if (present(mask)) then
            call mask_%set([mask])
            opt_%mask = mask_%p(1)
        end if
        if (present(begin)) then
            call begin_%set([begin])
            opt_%begin = begin_%p(1)
        end if
        if (present(end)) then
            call end_%set([end])
            opt_%end = end_%p(1)
        end if
        st_ = c_dataset_mask(ds_, c_dataset(address_of(base)), c_tokenizer(address_of(t)), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call need(ds, base)
            call need(ds, t)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_moments(ds, field, mean, std, stat, errmsg)
        class(ctn_dataset), intent(in) :: ds
        integer, intent(in) :: field
        real(c_double), intent(inout) :: mean(:)
        real(c_double), intent(inout) :: std(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'dataset_moments: std', &
            ubound(std, 1, c_int64_t), ubound(mean, 1, c_int64_t), &
            'as many as mean')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_dataset_moments(c_dataset(address_of(ds)), int(field, c_int), &
                ubound(mean, 1, kind=c_int64_t), mean, std)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dataset_standardize(ds, base, field, mean, std, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        integer, intent(in) :: field
        real(c_double), intent(in) :: mean(:)
        real(c_double), intent(in) :: std(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'dataset_standardize: std', &
            ubound(std, 1, c_int64_t), ubound(mean, 1, c_int64_t), &
            'as many as mean')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_dataset_standardize(ds_, c_dataset(address_of(base)), int(field, c_int), &
                ubound(mean, 1, kind=c_int64_t), mean, std)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call give(base, ds)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_optim(o, c, bucket, shard, progress, when, defer, exact, stat, &
                errmsg)
        type(ctn_optim), intent(in) :: o
        type(ctn_comm), intent(in) :: c
        integer(c_int64_t), intent(in), optional :: bucket
        integer, intent(in), optional :: shard
        integer, intent(in), optional :: progress
        integer, intent(in), optional :: when
        integer, intent(in), optional :: defer
        integer, intent(in), optional :: exact
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_dist_opt) :: opt_
        integer(c_int) :: st_
        if (present(bucket)) opt_%bucket = bucket
        if (present(shard)) opt_%shard = shard
        if (present(progress)) opt_%progress = progress
        if (present(when)) opt_%when = when
        if (present(defer)) opt_%defer = defer
        if (present(exact)) opt_%exact = exact
        st_ = c_dist_optim(c_optim(address_of(o)), c_comm(address_of(c)), opt_)
        if (st_ >= 0) then
            call need(o, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_get_stats(o, out)
        type(ctn_optim), intent(in) :: o
        type(ctn_dist_stats), intent(inout) :: out
        call c_dist_get_stats(c_optim(address_of(o)), out)
    end subroutine

    recursive subroutine f_dist_step_empty(o, stat, errmsg)
        type(ctn_optim), intent(in) :: o
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_step_empty(c_loc(here), c_optim(address_of(o)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_values(o, stat, errmsg)
        type(ctn_optim), intent(in) :: o
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_values(c_optim(address_of(o)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_broadcast_vars(c, vars, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        type(ctn_vars), intent(in) :: vars
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_broadcast_vars(c_comm(address_of(c)), vars, int(root, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_broadcast_vars_module(c, m, root, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        type(ctn_module), intent(in) :: m
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_broadcast_vars(c_comm(address_of(c)), c_params(c_module(address_of(m))), &
                int(root, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_sync_batch_norm(m, c, stat, errmsg)
        type(ctn_module), intent(in) :: m
        type(ctn_comm), intent(in), optional :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: c_
        integer(c_int) :: st_
        if (present(c)) c_ = c_comm(address_of(c))
        st_ = c_dist_sync_batch_norm(c_module(address_of(m)), c_)
        if (st_ >= 0) then
            if (present(c)) call need(m, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_mean(c, value, weight, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        real(c_double), intent(inout) :: value(:)
        real(c_double), intent(inout) :: weight(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'dist_mean: weight', &
            ubound(weight, 1, c_int64_t), ubound(value, 1, c_int64_t), &
            'as many as value')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_dist_mean(c_comm(address_of(c)), ubound(value, 1, kind=c_int), value, &
                weight)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_evaluate(c, ctx, loader, loss, fn, stat, errmsg)
        type(ctn_comm), intent(in) :: c
        type(ctn_context), intent(in) :: ctx
        type(ctn_loader), intent(in) :: loader
        class(ctn_loss), intent(inout), target :: loss
        class(ctn_listener), intent(inout), target :: fn
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(holder), pointer :: loss_
        type(holder), pointer :: fn_
        integer(c_int) :: st_
        allocate (loss_)
        loss_%it => loss
        allocate (fn_)
        fn_%it => fn
        st_ = c_dist_evaluate(c_comm(address_of(c)), c_context(address_of(ctx)), &
                c_loader(address_of(loader)), c_funloc(call_loss), c_loc(loss_), &
                c_funloc(call_listener), c_loc(fn_))
        deallocate (loss_)
        deallocate (fn_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_trainer(tr, c, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_comm), intent(in) :: c
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_trainer(c_trainer(address_of(tr)), c_comm(address_of(c)), when)
        if (st_ >= 0) then
            call need(tr, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_state_save(dir, parts, c, stat, errmsg)
        character(*), intent(in) :: dir
        type(ctn_state_part), intent(in) :: parts(:)
        type(ctn_comm), intent(in), optional :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: c_
        integer(c_int) :: st_
        if (present(c)) c_ = c_comm(address_of(c))
        st_ = c_dist_state_save(c_, chars(dir), ubound(parts, 1, kind=c_int), parts)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_state_load(dir, parts, c, stat, errmsg)
        character(*), intent(in) :: dir
        type(ctn_state_part), intent(in) :: parts(:)
        type(ctn_comm), intent(in), optional :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: c_
        integer(c_int) :: st_
        if (present(c)) c_ = c_comm(address_of(c))
        st_ = c_dist_state_load(c_, chars(dir), ubound(parts, 1, kind=c_int), parts)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_dist_timeline_has(rank, size, ranks) result(res)
        integer, intent(in) :: rank
        integer, intent(in) :: size
        integer, intent(in) :: ranks
        integer(c_int) :: res
        res = c_dist_timeline_has(int(rank, c_int), int(size, c_int), int(ranks, c_int))
    end function

    recursive subroutine f_dist_timeline_begin(ctx, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_timeline_begin(c_context(address_of(ctx)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_timeline_write(ctx, path, steps, ranks, c, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: path
        integer, intent(in) :: steps
        integer, intent(in) :: ranks
        type(ctn_comm), intent(in), optional :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_comm) :: c_
        integer(c_int) :: st_
        if (present(c)) c_ = c_comm(address_of(c))
        st_ = c_dist_timeline_write(c_context(address_of(ctx)), c_, chars(path), int(steps, &
                c_int64_t), int(ranks, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_timeline(tr, path, steps, ranks, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: path
        integer, intent(in) :: steps
        integer, intent(in) :: ranks
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_timeline(c_trainer(address_of(tr)), chars(path), int(steps, c_int64_t), &
                int(ranks, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_dist_allreduce(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_allreduce(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_allreduce_max(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_allreduce_max(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_allreduce_min(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_allreduce_min(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_reduce(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_reduce(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_reduce_max(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_reduce_max(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_reduce_min(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_reduce_min(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_broadcast(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_broadcast(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_allgather(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_allgather(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_reduce_scatter(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_reduce_scatter(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_gather(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_gather(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_scatter(c, x, root, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_scatter(c_loc(here), c_comm(address_of(c)), x, int(root, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_alltoall(c, x, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_alltoall(c_loc(here), c_comm(address_of(c)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_send(c, x, rank, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_tensor), intent(in) :: x
        integer, intent(in) :: rank
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_send(c_loc(here), c_comm(address_of(c)), x, int(rank, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_dist_recv(c, ctx, rank, dtype, dims, stat, errmsg) result(res)
        type(ctn_comm), intent(in) :: c
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: rank
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_dist_recv(c_loc(here), c_comm(address_of(c)), c_context(address_of(ctx)), &
                int(rank, c_int), dtype, ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_dist_chain_new(out, ctx, c, stat, errmsg)
        type(ctn_dist_chain), intent(inout) :: out
        type(ctn_context), intent(in) :: ctx
        type(ctn_comm), intent(in) :: c
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dist_chain) :: out_
        integer(c_int) :: st_
        st_ = c_dist_chain_new(out_, c_context(address_of(ctx)), c_comm(address_of(c)))
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_dist_chain_free))
            call need(out, ctx)
            call need(out, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_chain_add(chain, m, stat, errmsg)
        class(ctn_dist_chain), intent(in) :: chain
        type(ctn_module), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_chain_add(c_loc(here), c_dist_chain(address_of(chain)), &
                c_module(address_of(m)))
        if (st_ >= 0) then
            call need(chain, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_chain_recv(chain, rank, dtype, dims, stat, errmsg)
        class(ctn_dist_chain), intent(in) :: chain
        integer, intent(in) :: rank
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_chain_recv(c_loc(here), c_dist_chain(address_of(chain)), int(rank, c_int), &
                dtype, ubound(dims, 1, kind=c_int), int(dims, c_int64_t))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dist_chain_send(chain, rank, stat, errmsg)
        class(ctn_dist_chain), intent(in) :: chain
        integer, intent(in) :: rank
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_dist_chain_send(c_loc(here), c_dist_chain(address_of(chain)), int(rank, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_dist_chain_call(chain, rows, x, stat, errmsg) result(res)
        class(ctn_dist_chain), intent(in) :: chain
        integer, intent(in) :: rows
        type(ctn_tensor), intent(in), optional :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_tensor) :: x_
        if (present(x)) x_ = x
        res = c_dist_chain_call(c_loc(here), c_dist_chain(address_of(chain)), x_, int(rows, &
                c_int64_t))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_dist_grid_new(out, c, ranks, periodic, stat, errmsg)
        type(ctn_dist_grid), intent(inout) :: out
        type(ctn_comm), intent(in) :: c
        integer, intent(in) :: ranks(:)
        integer, intent(in) :: periodic
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dist_grid) :: out_
        integer(c_int) :: st_
        st_ = c_dist_grid_new(out_, c_comm(address_of(c)), ubound(ranks, 1, kind=c_int), &
                int(ranks, c_int64_t), int(periodic, c_int))
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_dist_grid_free))
            call need(out, c)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_dist_grid_length(g, dimension, length) result(res)
        class(ctn_dist_grid), intent(in) :: g
        integer, intent(in) :: dimension
        integer, intent(in) :: length
        integer(c_int64_t) :: res
        res = c_dist_grid_length(c_dist_grid(address_of(g)), int(dimension, c_int), int(length, &
                c_int64_t))
    end function

    recursive function f_dist_grid_begin(g, dimension, length) result(res)
        class(ctn_dist_grid), intent(in) :: g
        integer, intent(in) :: dimension
        integer, intent(in) :: length
        integer(c_int64_t) :: res
        res = c_dist_grid_begin(c_dist_grid(address_of(g)), int(dimension, c_int), int(length, &
                c_int64_t))
    end function

    recursive function f_dist_halo(g, x, before, after, stat, errmsg) result(res)
        type(ctn_dist_grid), intent(in) :: g
        type(ctn_tensor), intent(in) :: x
        integer, intent(in), optional :: before(:)
        integer, intent(in), optional :: after(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        type(ctn_dist_halo_opt) :: opt_
        logical :: ok_
        ok_ = .true.
        if (present(before)) call fill(ok_, 'dist_halo: before', &
            opt_%before, before)
        if (present(after)) call fill(ok_, 'dist_halo: after', &
            opt_%after, after)
        if (ok_) res = c_dist_halo(c_loc(here), c_dist_grid(address_of(g)), x, opt_)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_dist_field(m, g, stat, errmsg)
        type(ctn_module), intent(in) :: m
        type(ctn_dist_grid), intent(in), optional :: g
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dist_grid) :: g_
        integer(c_int) :: st_
        if (present(g)) g_ = c_dist_grid(address_of(g))
        st_ = c_dist_field(c_module(address_of(m)), g_)
        if (st_ >= 0) then
            if (present(g)) call need(m, g)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_env_count() result(res)
        integer(c_int) :: res
        res = c_env_count()
    end function

    recursive subroutine f_env_get(i, out, stat, errmsg)
        integer, intent(in) :: i
        type(ctn_env_entry), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_env_get(int(i, c_int), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_generator_new(g, m, room, temperature, top_k, top_p, seed, &
                repetition_penalty, stat, errmsg)
        type(ctn_generator), intent(inout) :: g
        type(ctn_module), intent(in) :: m
        integer, intent(in), optional :: room
        real(c_double), intent(in), optional :: temperature
        integer, intent(in), optional :: top_k
        real(c_double), intent(in), optional :: top_p
        integer, intent(in), optional :: seed
        real(c_double), intent(in), optional :: repetition_penalty
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_generator) :: g_
        type(ctn_generator_opt) :: opt_
        integer(c_int) :: st_
        if (present(room)) opt_%room = room
        if (present(temperature)) opt_%temperature = temperature
        if (present(top_k)) opt_%top_k = top_k
        if (present(top_p)) opt_%top_p = top_p
        if (present(seed)) opt_%seed = seed
        if (present(repetition_penalty)) opt_%repetition_penalty = repetition_penalty
        st_ = c_generator_new(g_, c_module(address_of(m)), opt_)
        if (st_ >= 0) then
            call own(g, g_%p, c_funloc(c_generator_free))
            call need(g, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_generator_next(g, tokens, next, stat, errmsg)
        class(ctn_generator), intent(in) :: g
        integer(c_int32_t), intent(in) :: tokens(:)
        integer(c_int32_t), intent(inout) :: next(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        call same_length(ok_, 'generator_next: tokens', &
            ubound(tokens, 1, c_int64_t), int(c_generator_sequences(c_generator(address_of(g))), &
                c_int64_t), &
            'one per sequence of g')
        call same_length(ok_, 'generator_next: next', &
            ubound(next, 1, c_int64_t), int(c_generator_sequences(c_generator(address_of(g))), &
                c_int64_t), &
            'one per sequence of g')
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_generator_next(c_generator(address_of(g)), tokens, next)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_generator_sequences(g) result(res)
        class(ctn_generator), intent(in) :: g
        integer(c_int64_t) :: res
        res = c_generator_sequences(c_generator(address_of(g)))
    end function

    recursive subroutine f_image_folder_open(ds, dir, height, width, crop, resize, scale, ratio, &
                pad, flip, brightness, contrast, saturation, hue, mean, std, raw, channels_last, &
                gray, randaugment, magnitude, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: dir
        integer, intent(in), optional :: height
        integer, intent(in), optional :: width
        integer(c_int), intent(in), optional :: crop
        integer, intent(in), optional :: resize
        real(c_double), intent(in), optional :: scale(:)
        real(c_double), intent(in), optional :: ratio(:)
        integer, intent(in), optional :: pad
        integer, intent(in), optional :: flip
        real(c_double), intent(in), optional :: brightness
        real(c_double), intent(in), optional :: contrast
        real(c_double), intent(in), optional :: saturation
        real(c_double), intent(in), optional :: hue
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: raw
        integer, intent(in), optional :: channels_last
        integer, intent(in), optional :: gray
        integer, intent(in), optional :: randaugment
        real(c_double), intent(in), optional :: magnitude
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_image_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(height)) opt_%height = height
        if (present(width)) opt_%width = width
        if (present(crop)) opt_%crop = crop
        if (present(resize)) opt_%resize = resize
        ok_ = .true.
        if (present(scale)) call fill(ok_, 'image_folder_open: scale', &
            opt_%scale, scale)
        if (present(ratio)) call fill(ok_, 'image_folder_open: ratio', &
            opt_%ratio, ratio)
        if (present(pad)) opt_%pad = pad
        if (present(flip)) opt_%flip = flip
        if (present(brightness)) opt_%brightness = brightness
        if (present(contrast)) opt_%contrast = contrast
        if (present(saturation)) opt_%saturation = saturation
        if (present(hue)) opt_%hue = hue
        if (present(mean)) call fill(ok_, 'image_folder_open: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'image_folder_open: std', &
            opt_%std, std)
        if (present(raw)) opt_%raw = raw
        if (present(channels_last)) opt_%channels_last = channels_last
        if (present(gray)) opt_%gray = gray
        if (present(randaugment)) opt_%randaugment = randaugment
        if (present(magnitude)) opt_%magnitude = magnitude
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_image_folder_open(ds_, chars(dir), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_image_list_open(ds, list, root, height, width, crop, resize, scale, &
                ratio, pad, flip, brightness, contrast, saturation, hue, mean, std, raw, &
                channels_last, gray, randaugment, magnitude, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: list
        character(*), intent(in) :: root
        integer, intent(in), optional :: height
        integer, intent(in), optional :: width
        integer(c_int), intent(in), optional :: crop
        integer, intent(in), optional :: resize
        real(c_double), intent(in), optional :: scale(:)
        real(c_double), intent(in), optional :: ratio(:)
        integer, intent(in), optional :: pad
        integer, intent(in), optional :: flip
        real(c_double), intent(in), optional :: brightness
        real(c_double), intent(in), optional :: contrast
        real(c_double), intent(in), optional :: saturation
        real(c_double), intent(in), optional :: hue
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: raw
        integer, intent(in), optional :: channels_last
        integer, intent(in), optional :: gray
        integer, intent(in), optional :: randaugment
        real(c_double), intent(in), optional :: magnitude
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_image_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(height)) opt_%height = height
        if (present(width)) opt_%width = width
        if (present(crop)) opt_%crop = crop
        if (present(resize)) opt_%resize = resize
        ok_ = .true.
        if (present(scale)) call fill(ok_, 'image_list_open: scale', &
            opt_%scale, scale)
        if (present(ratio)) call fill(ok_, 'image_list_open: ratio', &
            opt_%ratio, ratio)
        if (present(pad)) opt_%pad = pad
        if (present(flip)) opt_%flip = flip
        if (present(brightness)) opt_%brightness = brightness
        if (present(contrast)) opt_%contrast = contrast
        if (present(saturation)) opt_%saturation = saturation
        if (present(hue)) opt_%hue = hue
        if (present(mean)) call fill(ok_, 'image_list_open: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'image_list_open: std', &
            opt_%std, std)
        if (present(raw)) opt_%raw = raw
        if (present(channels_last)) opt_%channels_last = channels_last
        if (present(gray)) opt_%gray = gray
        if (present(randaugment)) opt_%randaugment = randaugment
        if (present(magnitude)) opt_%magnitude = magnitude
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_image_list_open(ds_, chars(list), chars(root), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_segmentation_open(ds, path, image, ignore, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path
        type(ctn_image_opt), intent(in), target, optional :: image
        integer, intent(in), optional :: ignore
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_segmentation_opt) :: opt_
        integer(c_int) :: st_
        if (present(image)) opt_%image = c_loc(image)
        if (present(ignore)) opt_%ignore = ignore
        st_ = c_segmentation_open(ds_, chars(path), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_shards_open(ds, path, image, index_dir, stage, index, index_bytes, &
                stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        character(*), intent(in) :: path
        type(ctn_image_opt), intent(in), target, optional :: image
        character(*), intent(in), optional :: index_dir
        character(*), intent(in), optional :: stage
        type(c_ptr), intent(in), optional :: index
        integer(c_int64_t), intent(in), optional :: index_bytes
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_shards_opt) :: opt_
        type(texts), target :: index_dir_
        type(texts), target :: stage_
        integer(c_int) :: st_
        if (present(image)) opt_%image = c_loc(image)
        if (present(index_dir)) then
            call index_dir_%set([index_dir])
            opt_%index_dir = index_dir_%p(1)
        end if
        if (present(stage)) then
            call stage_%set([stage])
            opt_%stage = stage_%p(1)
        end if
        if (present(index)) opt_%index = index
        if (present(index_bytes)) opt_%index_bytes = index_bytes
        st_ = c_shards_open(ds_, chars(path), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_shards_pack(dir, out, samples, shard_bytes, seed, keep_order, progress, &
                user, stat, errmsg)
        character(*), intent(in) :: dir
        character(*), intent(in) :: out
        integer(c_int64_t), intent(out), optional :: samples
        integer(c_int64_t), intent(in), optional :: shard_bytes
        integer, intent(in), optional :: seed
        integer, intent(in), optional :: keep_order
        type(c_funptr), intent(in), optional :: progress
        type(c_ptr), intent(in), optional :: user
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_pack_opt) :: opt_
        integer(c_int) :: st_
        if (present(shard_bytes)) opt_%shard_bytes = shard_bytes
        if (present(seed)) opt_%seed = seed
        if (present(keep_order)) opt_%keep_order = keep_order
        if (present(progress)) opt_%progress = progress
        if (present(user)) opt_%user = user
        st_ = c_shards_pack(chars(dir), chars(out), samples, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_augment_new(ds, base, height, width, crop, resize, scale, ratio, pad, &
                flip, brightness, contrast, saturation, hue, mean, std, raw, channels_last, gray, &
                randaugment, magnitude, stat, errmsg)
        type(ctn_dataset), intent(inout) :: ds
        type(ctn_dataset), intent(in) :: base
        integer, intent(in), optional :: height
        integer, intent(in), optional :: width
        integer(c_int), intent(in), optional :: crop
        integer, intent(in), optional :: resize
        real(c_double), intent(in), optional :: scale(:)
        real(c_double), intent(in), optional :: ratio(:)
        integer, intent(in), optional :: pad
        integer, intent(in), optional :: flip
        real(c_double), intent(in), optional :: brightness
        real(c_double), intent(in), optional :: contrast
        real(c_double), intent(in), optional :: saturation
        real(c_double), intent(in), optional :: hue
        real(c_double), intent(in), optional :: mean(:)
        real(c_double), intent(in), optional :: std(:)
        integer, intent(in), optional :: raw
        integer, intent(in), optional :: channels_last
        integer, intent(in), optional :: gray
        integer, intent(in), optional :: randaugment
        real(c_double), intent(in), optional :: magnitude
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_dataset) :: ds_
        type(ctn_image_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(height)) opt_%height = height
        if (present(width)) opt_%width = width
        if (present(crop)) opt_%crop = crop
        if (present(resize)) opt_%resize = resize
        ok_ = .true.
        if (present(scale)) call fill(ok_, 'augment_new: scale', &
            opt_%scale, scale)
        if (present(ratio)) call fill(ok_, 'augment_new: ratio', &
            opt_%ratio, ratio)
        if (present(pad)) opt_%pad = pad
        if (present(flip)) opt_%flip = flip
        if (present(brightness)) opt_%brightness = brightness
        if (present(contrast)) opt_%contrast = contrast
        if (present(saturation)) opt_%saturation = saturation
        if (present(hue)) opt_%hue = hue
        if (present(mean)) call fill(ok_, 'augment_new: mean', &
            opt_%mean, mean)
        if (present(std)) call fill(ok_, 'augment_new: std', &
            opt_%std, std)
        if (present(raw)) opt_%raw = raw
        if (present(channels_last)) opt_%channels_last = channels_last
        if (present(gray)) opt_%gray = gray
        if (present(randaugment)) opt_%randaugment = randaugment
        if (present(magnitude)) opt_%magnitude = magnitude
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_augment_new(ds_, c_dataset(address_of(base)), opt_)
        if (st_ >= 0) then
            call own(ds, ds_%p, c_funloc(c_dataset_free))
            call give(base, ds)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_build_count() result(res)
        integer(c_int) :: res
        res = c_build_count()
    end function

    recursive subroutine f_build_get(i, out, stat, errmsg)
        integer, intent(in) :: i
        type(ctn_build_entry), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_build_get(int(i, c_int), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_machine_get(out)
        type(ctn_machine), intent(inout) :: out
        call c_machine_get(out)
    end subroutine

    recursive subroutine f_weights_save(m, path, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_weights_save(c_module(address_of(m)), chars(path))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_weights_save_with(m, path, only, no_sync, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: path
        character(*), intent(in), optional :: only(:)
        integer, intent(in), optional :: no_sync
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_weights_save_opt) :: opt_
        type(texts), target :: only_
        integer(c_int) :: st_
        if (present(only)) then
            call only_%set(only)
            opt_%only = c_loc(only_%p)
        end if
        if (present(no_sync)) opt_%no_sync = no_sync
        st_ = c_weights_save_with(c_module(address_of(m)), chars(path), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_weights_load(m, path, partial, rename, map, user, new_head, fresh, &
                stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: path
        integer, intent(in), optional :: partial
        character(*), intent(in), optional :: rename(:)
        type(c_funptr), intent(in), optional :: map
        type(c_ptr), intent(in), optional :: user
        integer, intent(in), optional :: new_head
        type(c_funptr), intent(in), optional :: fresh
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_weights_opt) :: opt_
        type(texts), target :: rename_
        integer(c_int) :: st_
        if (present(partial)) opt_%partial = partial
        if (present(rename)) then
            call rename_%set(rename)
            opt_%rename = c_loc(rename_%p)
        end if
        if (present(map)) opt_%map = map
        if (present(user)) opt_%user = user
        if (present(new_head)) opt_%new_head = new_head
        if (present(fresh)) opt_%fresh = fresh
        st_ = c_weights_load(c_module(address_of(m)), chars(path), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_published_write(m, from, folder, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: from
        character(*), intent(in) :: folder
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_published_write(c_module(address_of(m)), chars(from), chars(folder))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lora_open(m, folder, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: folder
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_lora_open(c_module(address_of(m)), chars(folder))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_weights_open(w, path, stat, errmsg)
        type(ctn_weights), intent(inout) :: w
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_weights) :: w_
        integer(c_int) :: st_
        st_ = c_weights_open(w_, chars(path))
        if (st_ >= 0) then
            call own(w, w_%p, c_funloc(c_weights_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_weights_format(w) result(res)
        class(ctn_weights), intent(in) :: w
        character(:), allocatable :: res
        res = text_of(c_weights_format(c_weights(address_of(w))))
    end function

    recursive function f_weights_arrays(w) result(res)
        class(ctn_weights), intent(in) :: w
        integer(c_int64_t) :: res
        res = c_weights_arrays(c_weights(address_of(w)))
    end function

    recursive subroutine f_weights_get_array(w, i, out, stat, errmsg)
        class(ctn_weights), intent(in) :: w
        integer, intent(in) :: i
        type(ctn_weights_array), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_weights_get_array(c_weights(address_of(w)), int(i, c_int64_t), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_weights_find(w, name) result(res)
        class(ctn_weights), intent(in) :: w
        character(*), intent(in) :: name
        integer(c_int64_t) :: res
        res = c_weights_find(c_weights(address_of(w)), chars(name))
    end function

    recursive subroutine f_weights_write(path, items, stat, errmsg)
        character(*), intent(in) :: path
        type(ctn_weights_item), intent(in) :: items(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_weights_write(chars(path), ubound(items, 1, kind=c_int), items)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_part_module(prefix, m) result(res)
        character(*), intent(in) :: prefix
        type(ctn_module), intent(in) :: m
        type(ctn_state_part) :: res
        type(texts), pointer :: prefix_
        allocate (prefix_)
        call prefix_%set([prefix])
        res = c_part_module(prefix_%p(1), c_module(address_of(m)))
        call keep(m, prefix_)
    end function

    recursive function f_part_optim(prefix, o) result(res)
        character(*), intent(in) :: prefix
        type(ctn_optim), intent(in) :: o
        type(ctn_state_part) :: res
        type(texts), pointer :: prefix_
        allocate (prefix_)
        call prefix_%set([prefix])
        res = c_part_optim(prefix_%p(1), c_optim(address_of(o)))
        call keep(o, prefix_)
    end function

    recursive function f_part_context(prefix, ctx) result(res)
        character(*), intent(in) :: prefix
        type(ctn_context), intent(in) :: ctx
        type(ctn_state_part) :: res
        type(texts), pointer :: prefix_
        allocate (prefix_)
        call prefix_%set([prefix])
        res = c_part_context(prefix_%p(1), c_context(address_of(ctx)))
        call keep(ctx, prefix_)
    end function

    recursive function f_part_loader(prefix, l) result(res)
        character(*), intent(in) :: prefix
        type(ctn_loader), intent(in) :: l
        type(ctn_state_part) :: res
        type(texts), pointer :: prefix_
        allocate (prefix_)
        call prefix_%set([prefix])
        res = c_part_loader(prefix_%p(1), c_loader(address_of(l)))
        call keep(l, prefix_)
    end function

    recursive subroutine f_state_save(path, parts, stat, errmsg)
        character(*), intent(in) :: path
        type(ctn_state_part), intent(in) :: parts(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_state_save(chars(path), ubound(parts, 1, kind=c_int), parts)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_state_load(path, parts, stat, errmsg)
        character(*), intent(in) :: path
        type(ctn_state_part), intent(in) :: parts(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_state_load(chars(path), ubound(parts, 1, kind=c_int), parts)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_var_init(v, init, stat, errmsg)
        class(ctn_var), intent(in) :: v
        type(ctn_init), intent(in), optional :: init
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_var_init(c_var(address_of(v)), init)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_new(m, ctx, forward, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        class(ctn_layer), intent(inout), target :: forward
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(holder), pointer :: forward_
        integer(c_int) :: st_
        allocate (forward_)
        forward_%it => forward
        st_ = c_module_new(m_, c_context(address_of(ctx)), c_funloc(call_layer), c_loc(forward_), &
                c_null_funptr)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
            call keep(m, forward_)
        end if
        if (st_ < 0) then
            deallocate (forward_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_new_multi(m, ctx, forward, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        class(ctn_layer_multi), intent(inout), target :: forward
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(holder), pointer :: forward_
        integer(c_int) :: st_
        allocate (forward_)
        forward_%it => forward
        st_ = c_module_new_multi(m_, c_context(address_of(ctx)), c_funloc(call_layer_multi), &
                c_loc(forward_), c_null_funptr)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
            call keep(m, forward_)
        end if
        if (st_ < 0) then
            deallocate (forward_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_add(m, name, child, stat, errmsg)
        class(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        type(ctn_module), intent(in) :: child
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_module_add(c_module(address_of(m)), chars(name), c_module(address_of(child)))
        if (st_ >= 0) then
            call give(child, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_module_children(m) result(res)
        class(ctn_module), intent(in) :: m
        integer(c_int) :: res
        res = c_module_children(c_module(address_of(m)))
    end function

    recursive subroutine f_module_child(m, i, found)
        class(ctn_module), intent(in) :: m
        integer, intent(in) :: i
        type(ctn_module), intent(inout) :: found
        type(c_module) :: found_
        found_ = c_module_child(c_module(address_of(m)), int(i, c_int))
        call borrow(found, found_%p, m)
    end subroutine

    recursive subroutine f_module_context(m, found)
        class(ctn_module), intent(in) :: m
        type(ctn_context), intent(inout) :: found
        type(c_context) :: found_
        found_ = c_module_context(c_module(address_of(m)))
        call borrow(found, found_%p, m)
    end subroutine

    recursive function f_module_predicts(m) result(res)
        class(ctn_module), intent(in) :: m
        integer(c_int) :: res
        res = c_module_predicts(c_module(address_of(m)))
    end function

    recursive function f_module_ends(m, ids, room) result(res)
        class(ctn_module), intent(in) :: m
        integer(c_int32_t), intent(out) :: ids
        integer, intent(in) :: room
        integer(c_int) :: res
        res = c_module_ends(c_module(address_of(m)), ids, int(room, c_int))
    end function

    recursive subroutine f_module_param(m, name, dtype, dims, v, init, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        type(ctn_var), intent(inout), optional :: v
        type(ctn_init), intent(in), optional :: init
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_var) :: v_
        integer(c_int) :: st_
        st_ = c_module_param(v_, c_module(address_of(m)), chars(name), dtype, ubound(dims, 1, &
                kind=c_int), int(dims, c_int64_t), init)
        if (st_ >= 0) then
            if (present(v)) then
                call borrow(v, v_%p, m)
            end if
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_state(m, name, dtype, dims, v, init, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        integer(c_int), intent(in) :: dtype
        integer, intent(in) :: dims(:)
        type(ctn_var), intent(inout), optional :: v
        type(ctn_init), intent(in), optional :: init
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_var) :: v_
        integer(c_int) :: st_
        st_ = c_module_state(v_, c_module(address_of(m)), chars(name), dtype, ubound(dims, 1, &
                kind=c_int), int(dims, c_int64_t), init)
        if (st_ >= 0) then
            if (present(v)) then
                call borrow(v, v_%p, m)
            end if
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_tie(m, name, v, stat, errmsg)
        class(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        type(ctn_var), intent(in) :: v
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_module_tie(c_module(address_of(m)), chars(name), c_var(address_of(v)))
        if (st_ >= 0) then
            call need(m, v)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_call(m, x, stat, errmsg) result(res)
        type(ctn_module), intent(in) :: m
        type(ctn_tensor), intent(in) :: x
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_call(c_loc(here), c_module(address_of(m)), x)
        call settle_tensor(res, stat, errmsg)
    end function

    recursive function f_call_multi(m, x) result(res)
        type(ctn_module), intent(in) :: m
        type(ctn_tensors), intent(in) :: x
        type(ctn_tensors) :: res
        res = c_call_multi(c_loc(here), c_module(address_of(m)), x)
    end function

    recursive subroutine f_module_set_recompute(m, on, stat, errmsg)
        class(ctn_module), intent(in) :: m
        integer, intent(in) :: on
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_module_set_recompute(c_module(address_of(m)), int(on, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_module_source(m) result(res)
        class(ctn_module), intent(in) :: m
        character(:), allocatable :: res
        res = text_of(c_module_source(c_module(address_of(m))))
    end function

    recursive function f_params(m) result(res)
        type(ctn_module), intent(in) :: m
        type(ctn_vars) :: res
        res = c_params(c_module(address_of(m)))
    end function

    recursive subroutine f_module_find(m, name, found, stat, errmsg)
        class(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        type(ctn_var), intent(inout) :: found
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_var) :: found_
        found_ = c_module_find(c_module(address_of(m)), chars(name))
        if (c_associated(found_%p)) call borrow(found, found_%p, m)
        call settle(merge(CTN_OK, c_error_status(), c_associated(found_%p)), &
                    stat, errmsg)
    end subroutine

    recursive function f_module_set_trainable(m, on, pattern, stat, errmsg) result(res)
        class(ctn_module), intent(in) :: m
        integer, intent(in) :: on
        character(*), intent(in), optional :: pattern
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: res
        character(kind=c_char), allocatable :: pattern_(:)
        call set_chars(pattern_, pattern)
        res = c_module_set_trainable(c_module(address_of(m)), pattern_, int(on, c_int))
        call settle(merge(c_error_status(), CTN_OK, res < 0), stat, errmsg)
    end function

    recursive function f_module_freeze_statistics(m, on, pattern, stat, errmsg) result(res)
        class(ctn_module), intent(in) :: m
        integer, intent(in) :: on
        character(*), intent(in), optional :: pattern
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: res
        character(kind=c_char), allocatable :: pattern_(:)
        call set_chars(pattern_, pattern)
        res = c_module_freeze_statistics(c_module(address_of(m)), pattern_, int(on, c_int))
        call settle(merge(c_error_status(), CTN_OK, res < 0), stat, errmsg)
    end function

    recursive subroutine f_module_copy(copy, m, stat, errmsg)
        type(ctn_module), intent(inout) :: copy
        type(ctn_module), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: copy_
        integer(c_int) :: st_
        st_ = c_module_copy(copy_, c_module(address_of(m)))
        if (st_ >= 0) then
            call own(copy, copy_%p, c_funloc(c_module_free))
            call need(copy, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_share(copy, ctx, m, stat, errmsg)
        type(ctn_module), intent(inout) :: copy
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: copy_
        integer(c_int) :: st_
        st_ = c_module_share(copy_, c_context(address_of(ctx)), c_module(address_of(m)))
        if (st_ >= 0) then
            call own(copy, copy_%p, c_funloc(c_module_free))
            call need(copy, ctx)
            call need(copy, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sequential_new(m, ctx, modules, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: modules(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(c_module) :: modules_(ubound(modules, 1))
        integer :: i_
        integer(c_int) :: st_
        do i_ = 1, ubound(modules, 1)
            modules_(i_) = c_module(address_of(modules(i_)))
        end do
        st_ = c_sequential_new(m_, c_context(address_of(ctx)), ubound(modules, 1, kind=c_int), &
                modules_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
            do i_ = 1, ubound(modules, 1)
                call give(modules(i_), m)
            end do
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_module_list_new(m, ctx, modules, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: modules(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(c_module) :: modules_(ubound(modules, 1))
        integer :: i_
        integer(c_int) :: st_
        do i_ = 1, ubound(modules, 1)
            modules_(i_) = c_module(address_of(modules(i_)))
        end do
        st_ = c_module_list_new(m_, c_context(address_of(ctx)), ubound(modules, 1, kind=c_int), &
                modules_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
            do i_ = 1, ubound(modules, 1)
                call give(modules(i_), m)
            end do
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_linear_new(m, ctx, in, out, no_bias, weight, bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in), optional :: no_bias
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_linear_opt) :: opt_
        integer(c_int) :: st_
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        st_ = c_linear_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(out, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_conv_new(m, ctx, in, out, kernel, stride, pad, pad_end, dilation, &
                groups, out_pad, no_bias, weight, bias, pad_mode, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in) :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer, intent(in), optional :: no_bias
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_conv_module_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'conv_new: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'conv_new: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'conv_new: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'conv_new: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'conv_new: out_pad', &
            opt_%out_pad, out_pad)
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_conv_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(out, &
                c_int64_t), ubound(kernel, 1, kind=c_int), int(kernel, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_conv_transpose_new(m, ctx, in, out, kernel, stride, pad, pad_end, &
                dilation, groups, out_pad, no_bias, weight, bias, pad_mode, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in) :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer, intent(in), optional :: no_bias
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_conv_module_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'conv_transpose_new: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'conv_transpose_new: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'conv_transpose_new: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'conv_transpose_new: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'conv_transpose_new: out_pad', &
            opt_%out_pad, out_pad)
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_conv_transpose_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), &
                int(out, c_int64_t), ubound(kernel, 1, kind=c_int), int(kernel, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_deform_conv_new(m, ctx, in, out, kernel, stride, pad, pad_end, &
                dilation, groups, out_pad, no_bias, weight, bias, pad_mode, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in) :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: pad_end(:)
        integer, intent(in), optional :: dilation(:)
        integer, intent(in), optional :: groups
        integer, intent(in), optional :: out_pad(:)
        integer, intent(in), optional :: no_bias
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer(c_int), intent(in), optional :: pad_mode
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_conv_module_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(stride)) call fill(ok_, 'deform_conv_new: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'deform_conv_new: pad', &
            opt_%pad, pad)
        if (present(pad_end)) call fill(ok_, 'deform_conv_new: pad_end', &
            opt_%pad_end, pad_end)
        if (present(dilation)) call fill(ok_, 'deform_conv_new: dilation', &
            opt_%dilation, dilation)
        if (present(groups)) opt_%groups = groups
        if (present(out_pad)) call fill(ok_, 'deform_conv_new: out_pad', &
            opt_%out_pad, out_pad)
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        if (present(pad_mode)) opt_%pad_mode = pad_mode
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_deform_conv_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), &
                int(out, c_int64_t), ubound(kernel, 1, kind=c_int), int(kernel, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_spectral_conv_new(m, ctx, in, out, modes, weight, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in) :: modes(:)
        type(ctn_init), intent(in), target, optional :: weight
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_spectral_conv_opt) :: opt_
        integer(c_int) :: st_
        if (present(weight)) opt_%weight = c_loc(weight)
        st_ = c_spectral_conv_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(out, &
                c_int64_t), ubound(modes, 1, kind=c_int), int(modes, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_batch_norm_new(m, ctx, channels, eps, momentum, no_affine, weight, &
                bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: channels
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        integer, intent(in), optional :: no_affine
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_batch_norm_module_opt) :: opt_
        integer(c_int) :: st_
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        if (present(no_affine)) opt_%no_affine = no_affine
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        st_ = c_batch_norm_new(m_, c_context(address_of(ctx)), int(channels, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_decorrelated_batch_norm_new(m, ctx, channels, groups, eps, momentum, &
                stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: channels
        integer, intent(in), optional :: groups
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_decorrelated_batch_norm_opt) :: opt_
        integer(c_int) :: st_
        if (present(groups)) opt_%groups = groups
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        st_ = c_decorrelated_batch_norm_new(m_, c_context(address_of(ctx)), int(channels, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_batch_renorm_new(m, ctx, channels, eps, momentum, rmax, dmax, &
                no_affine, weight, bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: channels
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: rmax
        real(c_double), intent(in), optional :: dmax
        integer, intent(in), optional :: no_affine
        type(ctn_init), intent(in), target, optional :: weight
        type(ctn_init), intent(in), target, optional :: bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_batch_renorm_module_opt) :: opt_
        integer(c_int) :: st_
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        if (present(rmax)) opt_%rmax = rmax
        if (present(dmax)) opt_%dmax = dmax
        if (present(no_affine)) opt_%no_affine = no_affine
        if (present(weight)) opt_%weight = c_loc(weight)
        if (present(bias)) opt_%bias = c_loc(bias)
        st_ = c_batch_renorm_new(m_, c_context(address_of(ctx)), int(channels, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_batch_renorm_set_limits(m, rmax, dmax, stat, errmsg)
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in) :: rmax
        real(c_double), intent(in) :: dmax
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_batch_renorm_set_limits(c_module(address_of(m)), rmax, dmax)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_group_norm_new(m, ctx, groups, channels, eps, no_affine, no_bias, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: groups
        integer, intent(in) :: channels
        real(c_double), intent(in), optional :: eps
        integer, intent(in), optional :: no_affine
        integer, intent(in), optional :: no_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_norm_opt) :: opt_
        integer(c_int) :: st_
        if (present(eps)) opt_%eps = eps
        if (present(no_affine)) opt_%no_affine = no_affine
        if (present(no_bias)) opt_%no_bias = no_bias
        st_ = c_group_norm_new(m_, c_context(address_of(ctx)), int(groups, c_int64_t), &
                int(channels, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_layer_norm_new(m, ctx, dims, eps, no_affine, no_bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: dims(:)
        real(c_double), intent(in), optional :: eps
        integer, intent(in), optional :: no_affine
        integer, intent(in), optional :: no_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_norm_opt) :: opt_
        integer(c_int) :: st_
        if (present(eps)) opt_%eps = eps
        if (present(no_affine)) opt_%no_affine = no_affine
        if (present(no_bias)) opt_%no_bias = no_bias
        st_ = c_layer_norm_new(m_, c_context(address_of(ctx)), ubound(dims, 1, kind=c_int), &
                int(dims, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_rms_norm_new(m, ctx, dims, eps, no_affine, no_bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: dims(:)
        real(c_double), intent(in), optional :: eps
        integer, intent(in), optional :: no_affine
        integer, intent(in), optional :: no_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_norm_opt) :: opt_
        integer(c_int) :: st_
        if (present(eps)) opt_%eps = eps
        if (present(no_affine)) opt_%no_affine = no_affine
        if (present(no_bias)) opt_%no_bias = no_bias
        st_ = c_rms_norm_new(m_, c_context(address_of(ctx)), ubound(dims, 1, kind=c_int), &
                int(dims, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_embedding_new(m, ctx, rows, width, weight, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: rows
        integer, intent(in) :: width
        type(ctn_init), intent(in), optional :: weight
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_embedding_new(m_, c_context(address_of(ctx)), int(rows, c_int64_t), int(width, &
                c_int64_t), weight)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lstm_new(m, ctx, in, hidden, layers, bidirectional, batch_first, &
                no_bias, dropout, projection, relu, composed, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: bidirectional
        integer, intent(in), optional :: batch_first
        integer, intent(in), optional :: no_bias
        real(c_double), intent(in), optional :: dropout
        integer, intent(in), optional :: projection
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_rnn_module_opt) :: opt_
        integer(c_int) :: st_
        if (present(layers)) opt_%layers = layers
        if (present(bidirectional)) opt_%bidirectional = bidirectional
        if (present(batch_first)) opt_%batch_first = batch_first
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(dropout)) opt_%dropout = dropout
        if (present(projection)) opt_%projection = projection
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_lstm_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(hidden, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_gru_new(m, ctx, in, hidden, layers, bidirectional, batch_first, &
                no_bias, dropout, projection, relu, composed, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: bidirectional
        integer, intent(in), optional :: batch_first
        integer, intent(in), optional :: no_bias
        real(c_double), intent(in), optional :: dropout
        integer, intent(in), optional :: projection
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_rnn_module_opt) :: opt_
        integer(c_int) :: st_
        if (present(layers)) opt_%layers = layers
        if (present(bidirectional)) opt_%bidirectional = bidirectional
        if (present(batch_first)) opt_%batch_first = batch_first
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(dropout)) opt_%dropout = dropout
        if (present(projection)) opt_%projection = projection
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_gru_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(hidden, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_rnn_new(m, ctx, in, hidden, layers, bidirectional, batch_first, &
                no_bias, dropout, projection, relu, composed, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: bidirectional
        integer, intent(in), optional :: batch_first
        integer, intent(in), optional :: no_bias
        real(c_double), intent(in), optional :: dropout
        integer, intent(in), optional :: projection
        integer, intent(in), optional :: relu
        integer, intent(in), optional :: composed
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_rnn_module_opt) :: opt_
        integer(c_int) :: st_
        if (present(layers)) opt_%layers = layers
        if (present(bidirectional)) opt_%bidirectional = bidirectional
        if (present(batch_first)) opt_%batch_first = batch_first
        if (present(no_bias)) opt_%no_bias = no_bias
        if (present(dropout)) opt_%dropout = dropout
        if (present(projection)) opt_%projection = projection
        if (present(relu)) opt_%relu = relu
        if (present(composed)) opt_%composed = composed
        st_ = c_rnn_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(hidden, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_child_sum_tree_lstm_new(m, ctx, in, hidden, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_child_sum_tree_lstm_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), &
                int(hidden, c_int64_t))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_nary_tree_lstm_new(m, ctx, in, hidden, children, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(in) :: children
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_nary_tree_lstm_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(hidden, &
                c_int64_t), int(children, c_int64_t))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_peephole_lstm_new(m, ctx, in, hidden, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: hidden
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_peephole_lstm_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(hidden, &
                c_int64_t))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_crf_new(m, ctx, K, init, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: K
        type(ctn_init), intent(in), optional :: init
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_crf_new(m_, c_context(address_of(ctx)), int(K, c_int64_t), init)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_graph_conv_new(m, ctx, in, out, no_bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in), optional :: no_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_graph_conv_opt) :: opt_
        integer(c_int) :: st_
        if (present(no_bias)) opt_%no_bias = no_bias
        st_ = c_graph_conv_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(out, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_graph_attention_new(m, ctx, in, out, heads, mean, slope, dropout, &
                no_bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: in
        integer, intent(in) :: out
        integer, intent(in), optional :: heads
        integer, intent(in), optional :: mean
        real(c_double), intent(in), optional :: slope
        real(c_double), intent(in), optional :: dropout
        integer, intent(in), optional :: no_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_graph_attention_opt) :: opt_
        integer(c_int) :: st_
        if (present(heads)) opt_%heads = heads
        if (present(mean)) opt_%mean = mean
        if (present(slope)) opt_%slope = slope
        if (present(dropout)) opt_%dropout = dropout
        if (present(no_bias)) opt_%no_bias = no_bias
        st_ = c_graph_attention_new(m_, c_context(address_of(ctx)), int(in, c_int64_t), int(out, &
                c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_message_passing_new(m, ctx, edge, node, aggregate, residual, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        type(ctn_module), intent(in) :: edge
        type(ctn_module), intent(in) :: node
        integer(c_int), intent(in), optional :: aggregate
        integer, intent(in), optional :: residual
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_message_passing_opt) :: opt_
        integer(c_int) :: st_
        if (present(aggregate)) opt_%aggregate = aggregate
        if (present(residual)) opt_%residual = residual
        st_ = c_message_passing_new(m_, c_context(address_of(ctx)), c_module(address_of(edge)), &
                c_module(address_of(node)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
            call give(edge, m)
            call give(node, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_dropout_new(m, ctx, rate, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        real(c_double), intent(in) :: rate
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_dropout_new(m_, c_context(address_of(ctx)), rate)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_max_pool_new(m, ctx, kernel, stride, pad, ceil, exclude_pad, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_pool_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'max_pool_new: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'max_pool_new: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'max_pool_new: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_max_pool_new(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_avg_pool_new(m, ctx, kernel, stride, pad, ceil, exclude_pad, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: kernel(:)
        integer, intent(in), optional :: stride(:)
        integer, intent(in), optional :: pad(:)
        integer, intent(in), optional :: ceil
        integer, intent(in), optional :: exclude_pad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_pool_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        ok_ = .true.
        if (present(kernel)) call fill(ok_, 'avg_pool_new: kernel', &
            opt_%kernel, kernel)
        if (present(stride)) call fill(ok_, 'avg_pool_new: stride', &
            opt_%stride, stride)
        if (present(pad)) call fill(ok_, 'avg_pool_new: pad', &
            opt_%pad, pad)
        if (present(ceil)) opt_%ceil = ceil
        if (present(exclude_pad)) opt_%exclude_pad = exclude_pad
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_avg_pool_new(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_flatten_new(m, ctx, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_flatten_new(m_, c_context(address_of(ctx)))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_inception_new(m, ctx, channels, out1, reduce3, out3, reduce5, out5, &
                pool, batch_norm, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: channels
        integer, intent(in), optional :: out1
        integer, intent(in), optional :: reduce3
        integer, intent(in), optional :: out3
        integer, intent(in), optional :: reduce5
        integer, intent(in), optional :: out5
        integer, intent(in), optional :: pool
        integer, intent(in), optional :: batch_norm
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_inception_opt) :: opt_
        integer(c_int) :: st_
        if (present(out1)) opt_%out1 = out1
        if (present(reduce3)) opt_%reduce3 = reduce3
        if (present(out3)) opt_%out3 = out3
        if (present(reduce5)) opt_%reduce5 = reduce5
        if (present(out5)) opt_%out5 = out5
        if (present(pool)) opt_%pool = pool
        if (present(batch_norm)) opt_%batch_norm = batch_norm
        st_ = c_inception_new(m_, c_context(address_of(ctx)), int(channels, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_inception_bn_new(m, ctx, channels, out1, reduce3, out3, reduce33, &
                out33, pool, stride, average, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in) :: channels
        integer, intent(in), optional :: out1
        integer, intent(in), optional :: reduce3
        integer, intent(in), optional :: out3
        integer, intent(in), optional :: reduce33
        integer, intent(in), optional :: out33
        integer, intent(in), optional :: pool
        integer, intent(in), optional :: stride
        integer, intent(in), optional :: average
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_inception_bn_opt) :: opt_
        integer(c_int) :: st_
        if (present(out1)) opt_%out1 = out1
        if (present(reduce3)) opt_%reduce3 = reduce3
        if (present(out3)) opt_%out3 = out3
        if (present(reduce33)) opt_%reduce33 = reduce33
        if (present(out33)) opt_%out33 = out33
        if (present(pool)) opt_%pool = pool
        if (present(stride)) opt_%stride = stride
        if (present(average)) opt_%average = average
        st_ = c_inception_bn_new(m_, c_context(address_of(ctx)), int(channels, c_int64_t), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_activation_new(m, ctx, op, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: op
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_activation_new(m_, c_context(address_of(ctx)), op_named(op))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lora_add(m, rank, alpha, only, base, stat, errmsg)
        type(ctn_module), intent(in) :: m
        integer, intent(in), optional :: rank
        real(c_double), intent(in), optional :: alpha
        character(*), intent(in), optional :: only(:)
        integer(c_int), intent(in), optional :: base
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_lora_opt) :: opt_
        type(texts), target :: only_
        integer(c_int) :: st_
        if (present(rank)) opt_%rank = rank
        if (present(alpha)) opt_%alpha = alpha
        if (present(only)) then
            call only_%set(only)
            opt_%only = c_loc(only_%p)
        end if
        if (present(base)) opt_%base = base
        st_ = c_lora_add(c_module(address_of(m)), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lora_merge(m, stat, errmsg)
        type(ctn_module), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_lora_merge(c_module(address_of(m)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_weight_norm_add(m, name, dim, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        integer, intent(in) :: dim
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_weight_norm_add(c_module(address_of(m)), chars(name), int(dim, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_spectral_norm_add(m, name, dim, iterations, eps, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: name
        integer, intent(in), optional :: dim
        integer, intent(in), optional :: iterations
        real(c_double), intent(in), optional :: eps
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_spectral_norm_opt) :: opt_
        integer(c_int) :: st_
        if (present(dim)) opt_%dim = dim
        if (present(iterations)) opt_%iterations = iterations
        if (present(eps)) opt_%eps = eps
        st_ = c_spectral_norm_add(c_module(address_of(m)), chars(name), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_onnx_open(m, ctx, path, frozen, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: path
        integer, intent(in), optional :: frozen
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_onnx_opt) :: opt_
        integer(c_int) :: st_
        if (present(frozen)) opt_%frozen = frozen
        st_ = c_onnx_open(m_, c_context(address_of(ctx)), chars(path), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_onnx_inputs(m) result(res)
        type(ctn_module), intent(in) :: m
        integer(c_int) :: res
        res = c_onnx_inputs(c_module(address_of(m)))
    end function

    recursive function f_onnx_outputs(m) result(res)
        type(ctn_module), intent(in) :: m
        integer(c_int) :: res
        res = c_onnx_outputs(c_module(address_of(m)))
    end function

    recursive subroutine f_onnx_input(m, i, out, stat, errmsg)
        type(ctn_module), intent(in) :: m
        integer, intent(in) :: i
        type(ctn_onnx_port), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_onnx_input(c_module(address_of(m)), int(i, c_int), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_onnx_output(m, i, out, stat, errmsg)
        type(ctn_module), intent(in) :: m
        integer, intent(in) :: i
        type(ctn_onnx_port), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_onnx_output(c_module(address_of(m)), int(i, c_int), out)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_onnx_run(m, x, y, stat, errmsg)
        type(ctn_module), intent(in) :: m
        type(ctn_tensor), intent(in) :: x(:)
        type(ctn_tensor), intent(inout) :: y(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_onnx_run(c_loc(here), c_module(address_of(m)), ubound(x, 1, kind=c_int), x, &
                ubound(y, 1, kind=c_int), y)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_onnx_export(path, inputs, outputs, opset, fold_batch_norm, external, &
                batch, any_batch, any_length, in_names, out_names, module, stat, errmsg)
        character(*), intent(in) :: path
        type(ctn_tensors), intent(in) :: inputs
        type(ctn_tensors), intent(in) :: outputs
        integer, intent(in), optional :: opset
        integer, intent(in), optional :: fold_batch_norm
        integer, intent(in), optional :: external
        integer, intent(in), optional :: batch
        integer, intent(in), optional :: any_batch
        integer, intent(in), optional :: any_length
        character(*), intent(in), optional :: in_names(:)
        character(*), intent(in), optional :: out_names(:)
        type(ctn_module), intent(in), optional :: module
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_onnx_export_opt) :: opt_
        type(texts), target :: in_names_
        type(texts), target :: out_names_
        integer(c_int) :: st_
        if (present(opset)) opt_%opset = opset
        if (present(fold_batch_norm)) opt_%fold_batch_norm = fold_batch_norm
        if (present(external)) opt_%external = external
        if (present(batch)) opt_%batch = batch
        if (present(any_batch)) opt_%any_batch = any_batch
        if (present(any_length)) opt_%any_length = any_length
        if (present(in_names)) then
            call in_names_%set(in_names)
            opt_%in_names = c_loc(in_names_%p)
        end if
        if (present(out_names)) then
            call out_names_%set(out_names)
            opt_%out_names = c_loc(out_names_%p)
        end if
        if (present(module)) opt_%module = c_module(address_of(module))
        st_ = c_onnx_export(chars(path), inputs, outputs, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_onnx_export_module(m, path, in, opset, fold_batch_norm, external, &
                batch, any_batch, any_length, in_names, out_names, module, stat, errmsg)
        type(ctn_module), intent(in) :: m
        character(*), intent(in) :: path
        type(ctn_field), intent(in) :: in(:)
        integer, intent(in), optional :: opset
        integer, intent(in), optional :: fold_batch_norm
        integer, intent(in), optional :: external
        integer, intent(in), optional :: batch
        integer, intent(in), optional :: any_batch
        integer, intent(in), optional :: any_length
        character(*), intent(in), optional :: in_names(:)
        character(*), intent(in), optional :: out_names(:)
        type(ctn_module), intent(in), optional :: module
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_onnx_export_opt) :: opt_
        type(texts), target :: in_names_
        type(texts), target :: out_names_
        integer(c_int) :: st_
        if (present(opset)) opt_%opset = opset
        if (present(fold_batch_norm)) opt_%fold_batch_norm = fold_batch_norm
        if (present(external)) opt_%external = external
        if (present(batch)) opt_%batch = batch
        if (present(any_batch)) opt_%any_batch = any_batch
        if (present(any_length)) opt_%any_length = any_length
        if (present(in_names)) then
            call in_names_%set(in_names)
            opt_%in_names = c_loc(in_names_%p)
        end if
        if (present(out_names)) then
            call out_names_%set(out_names)
            opt_%out_names = c_loc(out_names_%p)
        end if
        if (present(module)) opt_%module = c_module(address_of(module))
        st_ = c_onnx_export_module(c_module(address_of(m)), chars(path), ubound(in, 1, &
                kind=c_int), in, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sgd_new(o, vars, lr, momentum, dampening, decay, nesterov, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: dampening
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: nesterov
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_sgd_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(momentum)) opt_%momentum = momentum
        if (present(dampening)) opt_%dampening = dampening
        if (present(decay)) opt_%decay = decay
        if (present(nesterov)) opt_%nesterov = nesterov
        st_ = c_sgd_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_sgd_new_module(o, m, lr, momentum, dampening, decay, nesterov, stat, &
                errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: dampening
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: nesterov
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_sgd_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(momentum)) opt_%momentum = momentum
        if (present(dampening)) opt_%dampening = dampening
        if (present(decay)) opt_%decay = decay
        if (present(nesterov)) opt_%nesterov = nesterov
        st_ = c_sgd_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adam_new(o, vars, lr, beta1, beta2, eps, decay, amsgrad, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsgrad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsgrad)) opt_%amsgrad = amsgrad
        st_ = c_adam_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adam_new_module(o, m, lr, beta1, beta2, eps, decay, amsgrad, stat, &
                errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsgrad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsgrad)) opt_%amsgrad = amsgrad
        st_ = c_adam_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adamw_new(o, vars, lr, beta1, beta2, eps, decay, amsgrad, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsgrad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsgrad)) opt_%amsgrad = amsgrad
        st_ = c_adamw_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adamw_new_module(o, m, lr, beta1, beta2, eps, decay, amsgrad, stat, &
                errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsgrad
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsgrad)) opt_%amsgrad = amsgrad
        st_ = c_adamw_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_rmsprop_new(o, vars, lr, alpha, eps, momentum, decay, centered, stat, &
                errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: alpha
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: centered
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_rmsprop_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(alpha)) opt_%alpha = alpha
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        if (present(decay)) opt_%decay = decay
        if (present(centered)) opt_%centered = centered
        st_ = c_rmsprop_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_rmsprop_new_module(o, m, lr, alpha, eps, momentum, decay, centered, &
                stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: alpha
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: centered
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_rmsprop_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(alpha)) opt_%alpha = alpha
        if (present(eps)) opt_%eps = eps
        if (present(momentum)) opt_%momentum = momentum
        if (present(decay)) opt_%decay = decay
        if (present(centered)) opt_%centered = centered
        st_ = c_rmsprop_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adagrad_new(o, vars, lr, lr_decay, eps, initial, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: lr_decay
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: initial
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adagrad_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(lr_decay)) opt_%lr_decay = lr_decay
        if (present(eps)) opt_%eps = eps
        if (present(initial)) opt_%initial = initial
        if (present(decay)) opt_%decay = decay
        st_ = c_adagrad_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adagrad_new_module(o, m, lr, lr_decay, eps, initial, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: lr_decay
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: initial
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adagrad_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(lr_decay)) opt_%lr_decay = lr_decay
        if (present(eps)) opt_%eps = eps
        if (present(initial)) opt_%initial = initial
        if (present(decay)) opt_%decay = decay
        st_ = c_adagrad_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adadelta_new(o, vars, lr, rho, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: rho
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adadelta_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(rho)) opt_%rho = rho
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_adadelta_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adadelta_new_module(o, m, lr, rho, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: rho
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adadelta_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(rho)) opt_%rho = rho
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_adadelta_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adamax_new(o, vars, lr, beta1, beta2, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adamax_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_adamax_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adamax_new_module(o, m, lr, beta1, beta2, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adamax_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_adamax_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_nadam_new(o, vars, lr, beta1, beta2, eps, momentum_decay, decay, &
                decoupled, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum_decay
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: decoupled
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_nadam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(momentum_decay)) opt_%momentum_decay = momentum_decay
        if (present(decay)) opt_%decay = decay
        if (present(decoupled)) opt_%decoupled = decoupled
        st_ = c_nadam_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_nadam_new_module(o, m, lr, beta1, beta2, eps, momentum_decay, decay, &
                decoupled, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: momentum_decay
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: decoupled
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_nadam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(momentum_decay)) opt_%momentum_decay = momentum_decay
        if (present(decay)) opt_%decay = decay
        if (present(decoupled)) opt_%decoupled = decoupled
        st_ = c_nadam_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_radam_new(o, vars, lr, beta1, beta2, eps, decay, decoupled, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: decoupled
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_radam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(decoupled)) opt_%decoupled = decoupled
        st_ = c_radam_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_radam_new_module(o, m, lr, beta1, beta2, eps, decay, decoupled, stat, &
                errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: decoupled
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_radam_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(decoupled)) opt_%decoupled = decoupled
        st_ = c_radam_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lion_new(o, vars, lr, beta1, beta2, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lion_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(decay)) opt_%decay = decay
        st_ = c_lion_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lion_new_module(o, m, lr, beta1, beta2, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lion_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(decay)) opt_%decay = decay
        st_ = c_lion_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lamb_new(o, vars, lr, beta1, beta2, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lamb_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_lamb_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lamb_new_module(o, m, lr, beta1, beta2, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lamb_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_lamb_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lars_new(o, vars, lr, momentum, trust, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: trust
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lars_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(momentum)) opt_%momentum = momentum
        if (present(trust)) opt_%trust = trust
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_lars_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lars_new_module(o, m, lr, momentum, trust, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: momentum
        real(c_double), intent(in), optional :: trust
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lars_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(momentum)) opt_%momentum = momentum
        if (present(trust)) opt_%trust = trust
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_lars_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adabound_new(o, vars, lr, final_lr, gamma, beta1, beta2, eps, decay, &
                amsbound, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: final_lr
        real(c_double), intent(in), optional :: gamma
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsbound
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adabound_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(final_lr)) opt_%final_lr = final_lr
        if (present(gamma)) opt_%gamma = gamma
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsbound)) opt_%amsbound = amsbound
        st_ = c_adabound_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adabound_new_module(o, m, lr, final_lr, gamma, beta1, beta2, eps, &
                decay, amsbound, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: final_lr
        real(c_double), intent(in), optional :: gamma
        real(c_double), intent(in), optional :: beta1
        real(c_double), intent(in), optional :: beta2
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: amsbound
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adabound_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(final_lr)) opt_%final_lr = final_lr
        if (present(gamma)) opt_%gamma = gamma
        if (present(beta1)) opt_%beta1 = beta1
        if (present(beta2)) opt_%beta2 = beta2
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        if (present(amsbound)) opt_%amsbound = amsbound
        st_ = c_adabound_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_smorms3_new(o, vars, lr, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_smorms3_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_smorms3_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_smorms3_new_module(o, m, lr, eps, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: eps
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_smorms3_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(eps)) opt_%eps = eps
        if (present(decay)) opt_%decay = decay
        st_ = c_smorms3_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_msvag_new(o, vars, lr, beta, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_msvag_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta)) opt_%beta = beta
        if (present(decay)) opt_%decay = decay
        st_ = c_msvag_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_msvag_new_module(o, m, lr, beta, decay, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta
        real(c_double), intent(in), optional :: decay
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_msvag_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta)) opt_%beta = beta
        if (present(decay)) opt_%decay = decay
        st_ = c_msvag_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adafactor_new(o, vars, lr, beta2_decay, eps1, eps2, clip, decay, &
                fixed_step, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta2_decay
        real(c_double), intent(in), optional :: eps1
        real(c_double), intent(in), optional :: eps2
        real(c_double), intent(in), optional :: clip
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: fixed_step
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adafactor_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta2_decay)) opt_%beta2_decay = beta2_decay
        if (present(eps1)) opt_%eps1 = eps1
        if (present(eps2)) opt_%eps2 = eps2
        if (present(clip)) opt_%clip = clip
        if (present(decay)) opt_%decay = decay
        if (present(fixed_step)) opt_%fixed_step = fixed_step
        st_ = c_adafactor_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_adafactor_new_module(o, m, lr, beta2_decay, eps1, eps2, clip, decay, &
                fixed_step, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        real(c_double), intent(in), optional :: beta2_decay
        real(c_double), intent(in), optional :: eps1
        real(c_double), intent(in), optional :: eps2
        real(c_double), intent(in), optional :: clip
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: fixed_step
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_adafactor_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(beta2_decay)) opt_%beta2_decay = beta2_decay
        if (present(eps1)) opt_%eps1 = eps1
        if (present(eps2)) opt_%eps2 = eps2
        if (present(clip)) opt_%clip = clip
        if (present(decay)) opt_%decay = decay
        if (present(fixed_step)) opt_%fixed_step = fixed_step
        st_ = c_adafactor_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lbfgs_new(o, vars, lr, iterations, evaluations, history, tol_grad, &
                tol_change, no_line_search, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_vars), intent(in) :: vars
        real(c_double), intent(in), optional :: lr
        integer, intent(in), optional :: iterations
        integer, intent(in), optional :: evaluations
        integer, intent(in), optional :: history
        real(c_double), intent(in), optional :: tol_grad
        real(c_double), intent(in), optional :: tol_change
        integer, intent(in), optional :: no_line_search
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lbfgs_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(iterations)) opt_%iterations = iterations
        if (present(evaluations)) opt_%evaluations = evaluations
        if (present(history)) opt_%history = history
        if (present(tol_grad)) opt_%tol_grad = tol_grad
        if (present(tol_change)) opt_%tol_change = tol_change
        if (present(no_line_search)) opt_%no_line_search = no_line_search
        st_ = c_lbfgs_new(o_, vars, opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_lbfgs_new_module(o, m, lr, iterations, evaluations, history, tol_grad, &
                tol_change, no_line_search, stat, errmsg)
        type(ctn_optim), intent(inout) :: o
        type(ctn_module), intent(in) :: m
        real(c_double), intent(in), optional :: lr
        integer, intent(in), optional :: iterations
        integer, intent(in), optional :: evaluations
        integer, intent(in), optional :: history
        real(c_double), intent(in), optional :: tol_grad
        real(c_double), intent(in), optional :: tol_change
        integer, intent(in), optional :: no_line_search
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_optim) :: o_
        type(ctn_lbfgs_opt) :: opt_
        integer(c_int) :: st_
        if (present(lr)) opt_%lr = lr
        if (present(iterations)) opt_%iterations = iterations
        if (present(evaluations)) opt_%evaluations = evaluations
        if (present(history)) opt_%history = history
        if (present(tol_grad)) opt_%tol_grad = tol_grad
        if (present(tol_change)) opt_%tol_change = tol_change
        if (present(no_line_search)) opt_%no_line_search = no_line_search
        st_ = c_lbfgs_new(o_, c_params(c_module(address_of(m))), opt_)
        if (st_ >= 0) then
            call own(o, o_%p, c_funloc(c_optim_free))
            call need(o, m)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_backward(o, loss, stat, errmsg)
        type(ctn_optim), intent(in) :: o
        type(ctn_tensor), intent(in) :: loss
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_backward(c_loc(here), c_optim(address_of(o)), loss)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_optim_step(o, stat, errmsg)
        class(ctn_optim), intent(in) :: o
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_optim_step(c_loc(here), c_optim(address_of(o)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_optim_group(o, pattern, lr_scale, decay, freeze, stat, errmsg) result(res)
        class(ctn_optim), intent(in) :: o
        character(*), intent(in) :: pattern
        real(c_double), intent(in), optional :: lr_scale
        real(c_double), intent(in), optional :: decay
        integer, intent(in), optional :: freeze
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: res
        type(ctn_group_opt) :: opt_
        real(c_double), allocatable, target :: decay_
        if (present(lr_scale)) opt_%lr_scale = lr_scale
        if (present(decay)) then
            allocate (decay_, source=decay)
            opt_%decay = c_loc(decay_)
        end if
        if (present(freeze)) opt_%freeze = freeze
        res = c_optim_group(c_optim(address_of(o)), chars(pattern), opt_)
        call settle(merge(c_error_status(), CTN_OK, res < 0), stat, errmsg)
    end function

    recursive function f_optim_lr(o) result(res)
        class(ctn_optim), intent(in) :: o
        real(c_double) :: res
        res = c_optim_lr(c_optim(address_of(o)))
    end function

    recursive subroutine f_optim_set_lr(o, lr)
        class(ctn_optim), intent(in) :: o
        real(c_double), intent(in) :: lr
        call c_optim_set_lr(c_optim(address_of(o)), lr)
    end subroutine

    recursive function f_optim_hyper(o, name) result(res)
        class(ctn_optim), intent(in) :: o
        character(*), intent(in) :: name
        real(c_double) :: res
        res = c_optim_hyper(c_optim(address_of(o)), chars(name))
    end function

    recursive subroutine f_optim_set_hyper(o, name, value, stat, errmsg)
        class(ctn_optim), intent(in) :: o
        character(*), intent(in) :: name
        real(c_double), intent(in) :: value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_optim_set_hyper(c_optim(address_of(o)), chars(name), value)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_optim_set_clip(o, max)
        class(ctn_optim), intent(in) :: o
        real(c_double), intent(in) :: max
        call c_optim_set_clip(c_optim(address_of(o)), max)
    end subroutine

    recursive subroutine f_optim_set_clip_value(o, max)
        class(ctn_optim), intent(in) :: o
        real(c_double), intent(in) :: max
        call c_optim_set_clip_value(c_optim(address_of(o)), max)
    end subroutine

    recursive subroutine f_optim_set_lasso(o, rate)
        class(ctn_optim), intent(in) :: o
        real(c_double), intent(in) :: rate
        call c_optim_set_lasso(c_optim(address_of(o)), rate)
    end subroutine

    recursive subroutine f_optim_set_noise(o, eta, gamma, seed)
        class(ctn_optim), intent(in) :: o
        real(c_double), intent(in) :: eta
        real(c_double), intent(in) :: gamma
        integer, intent(in) :: seed
        call c_optim_set_noise(c_optim(address_of(o)), eta, gamma, int(seed, c_int64_t))
    end subroutine

    recursive subroutine f_optim_set_skip_nonfinite(o, on)
        class(ctn_optim), intent(in) :: o
        integer, intent(in) :: on
        call c_optim_set_skip_nonfinite(c_optim(address_of(o)), int(on, c_int))
    end subroutine

    recursive function f_optim_norm(o) result(res)
        class(ctn_optim), intent(in) :: o
        real(c_double) :: res
        res = c_optim_norm(c_optim(address_of(o)))
    end function

    recursive function f_optim_steps(o) result(res)
        class(ctn_optim), intent(in) :: o
        integer(c_int64_t) :: res
        res = c_optim_steps(c_optim(address_of(o)))
    end function

    recursive subroutine f_optim_set_loss_scale(o, opt, stat, errmsg)
        class(ctn_optim), intent(in) :: o
        type(ctn_loss_scale_opt), intent(in), optional :: opt
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_optim_set_loss_scale(c_optim(address_of(o)), opt)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_optim_loss_scale(o) result(res)
        class(ctn_optim), intent(in) :: o
        real(c_double) :: res
        res = c_optim_loss_scale(c_optim(address_of(o)))
    end function

    recursive function f_optim_skipped(o) result(res)
        class(ctn_optim), intent(in) :: o
        integer(c_int64_t) :: res
        res = c_optim_skipped(c_optim(address_of(o)))
    end function

    recursive function f_sched_factor(s, step) result(res)
        type(ctn_sched_opt), intent(in) :: s
        integer, intent(in) :: step
        real(c_double) :: res
        res = c_sched_factor(s, int(step, c_int64_t))
    end function

    recursive subroutine f_optim_set_schedule(o, s, stat, errmsg)
        class(ctn_optim), intent(in) :: o
        type(ctn_sched_opt), intent(in), optional :: s
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_optim_set_schedule(c_optim(address_of(o)), s)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_dtype_size(t) result(res)
        integer(c_int), intent(in) :: t
        integer(c_size_t) :: res
        res = c_dtype_size(t)
    end function

    recursive function f_dtype_name(t) result(res)
        integer(c_int), intent(in) :: t
        character(:), allocatable :: res
        res = text_of(c_dtype_name(t))
    end function

    recursive function f_ndim(t) result(res)
        type(ctn_tensor), intent(in) :: t
        integer(c_int) :: res
        res = c_ndim(t)
    end function

    recursive function f_dim(t, axis) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(in) :: axis
        integer(c_int64_t) :: res
        res = c_dim(t, int(axis, c_int))
    end function

    recursive function f_count(t) result(res)
        type(ctn_tensor), intent(in) :: t
        integer(c_int64_t) :: res
        res = c_count(t)
    end function

    recursive function f_dtype_of(t) result(res)
        type(ctn_tensor), intent(in) :: t
        integer(c_int) :: res
        res = c_dtype_of(t)
    end function

    recursive function f_item(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        real(c_double) :: res
        res = c_item(t)
        call settle(merge(c_error_status(), CTN_OK, ieee_is_nan(res)), stat, errmsg)
    end function

    recursive function f_tensor_text(t, stat, errmsg) result(res)
        type(ctn_tensor), intent(in) :: t
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        integer(c_int) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_tensor_text(t, buf_, ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_tensor_text(t, buf_, ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive subroutine f_tokenizer_open(t, path, ignore_special, keep_case, stat, errmsg)
        type(ctn_tokenizer), intent(inout) :: t
        character(*), intent(in) :: path
        integer, intent(in), optional :: ignore_special
        integer, intent(in), optional :: keep_case
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_tokenizer) :: t_
        type(ctn_tokenizer_opt) :: opt_
        integer(c_int) :: st_
        if (present(ignore_special)) opt_%ignore_special = ignore_special
        if (present(keep_case)) opt_%keep_case = keep_case
        st_ = c_tokenizer_open(t_, chars(path), opt_)
        if (st_ >= 0) then
            call own(t, t_%p, c_funloc(c_tokenizer_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_tokenizer_encode(t, text, ids, stat, errmsg) result(res)
        class(ctn_tokenizer), intent(in) :: t
        character(*), intent(in) :: text
        integer(c_int32_t), intent(inout) :: ids(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int64_t) :: res
        res = c_tokenizer_encode(c_tokenizer(address_of(t)), text, int(len(text), c_size_t), ids, &
                ubound(ids, 1, kind=c_size_t))
        call settle(merge(c_error_status(), CTN_OK, res < 0), stat, errmsg)
    end function

    recursive function f_tokenizer_decode(t, ids, stat, errmsg) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer(c_int32_t), intent(in) :: ids(:)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        integer(c_int64_t) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_tokenizer_decode(c_tokenizer(address_of(t)), ids, ubound(ids, 1, kind=c_size_t), &
                buf_, ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_tokenizer_decode(c_tokenizer(address_of(t)), ids, ubound(ids, 1, &
                kind=c_size_t), buf_, ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive function f_tokenizer_decode_next(t, state, id, stat, errmsg) result(res)
        class(ctn_tokenizer), intent(in) :: t
        type(ctn_decode_state), intent(inout) :: state
        integer, intent(in) :: id
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        integer(c_int64_t) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_tokenizer_decode_next(c_tokenizer(address_of(t)), state, int(id, c_int32_t), buf_, &
                ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_tokenizer_decode_next(c_tokenizer(address_of(t)), state, int(id, c_int32_t), &
                buf_, ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive function f_tokenizer_tokens(t) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer(c_int64_t) :: res
        res = c_tokenizer_tokens(c_tokenizer(address_of(t)))
    end function

    recursive function f_tokenizer_token(t, id, bytes) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer, intent(in) :: id
        integer(c_size_t), intent(out), optional :: bytes
        character(:), allocatable :: res
        res = text_of(c_tokenizer_token(c_tokenizer(address_of(t)), int(id, c_int64_t), bytes))
    end function

    recursive function f_tokenizer_id(t, text) result(res)
        class(ctn_tokenizer), intent(in) :: t
        character(*), intent(in) :: text
        integer(c_int32_t) :: res
        res = c_tokenizer_id(c_tokenizer(address_of(t)), text, int(len(text), c_size_t))
    end function

    recursive function f_tokenizer_special(t, id) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer, intent(in) :: id
        integer(c_int) :: res
        res = c_tokenizer_special(c_tokenizer(address_of(t)), int(id, c_int64_t))
    end function

    recursive function f_tokenizer_end(t) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer(c_int32_t) :: res
        res = c_tokenizer_end(c_tokenizer(address_of(t)))
    end function

    recursive function f_tokenizer_around(t, after, ids, room) result(res)
        class(ctn_tokenizer), intent(in) :: t
        integer, intent(in) :: after
        integer(c_int32_t), intent(out) :: ids
        integer, intent(in) :: room
        integer(c_int) :: res
        res = c_tokenizer_around(c_tokenizer(address_of(t)), int(after, c_int), ids, int(room, &
                c_int))
    end function

    recursive function f_tokenizer_chat(t, messages, no_prompt, stat, errmsg) result(res)
        class(ctn_tokenizer), intent(in) :: t
        character(*), intent(in) :: messages
        integer, intent(in), optional :: no_prompt
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        type(ctn_chat_opt) :: opt_
        integer(c_int64_t) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        if (present(no_prompt)) opt_%no_prompt = no_prompt
        allocate (buf_(1))
        n_ = c_tokenizer_chat(c_tokenizer(address_of(t)), messages, int(len(messages), c_size_t), &
                opt_, buf_, ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_tokenizer_chat(c_tokenizer(address_of(t)), messages, int(len(messages), &
                c_size_t), opt_, buf_, ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive subroutine f_tokens_pack(t, path, out, tokens, threads, end, piece, progress, user, &
                stat, errmsg)
        type(ctn_tokenizer), intent(in) :: t
        character(*), intent(in) :: path(:)
        character(*), intent(in) :: out
        integer(c_int64_t), intent(out), optional :: tokens
        integer, intent(in), optional :: threads
        character(*), intent(in), optional :: end
        integer, intent(in), optional :: piece
        type(c_funptr), intent(in), optional :: progress
        type(c_ptr), intent(in), optional :: user
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(texts), target :: path_
        type(ctn_tokens_pack_opt) :: opt_
        type(texts), target :: end_
        integer(c_int) :: st_
        call path_%set(path)
        if (present(threads)) opt_%threads = threads
        if (present(end)) then
            call end_%set([end])
            opt_%end = end_%p(1)
        end if
        if (present(piece)) opt_%piece = piece
        if (present(progress)) opt_%progress = progress
        if (present(user)) opt_%user = user
        st_ = c_tokens_pack(c_tokenizer(address_of(t)), ubound(path, 1, kind=c_int), path_%p, &
                chars(out), tokens, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_step_context(s, found)
        class(ctn_step), intent(in) :: s
        type(ctn_context), intent(inout) :: found
        type(c_context) :: found_
        found_ = c_step_context(c_step(address_of(s)))
        call borrow(found, found_%p, s)
    end subroutine

    recursive function f_step_batch(s) result(res)
        class(ctn_step), intent(in) :: s
        type(ctn_batch) :: res
        type(c_ptr) :: p_
        type(ctn_batch), pointer :: found_
        p_ = c_step_batch(c_step(address_of(s)))
        if (.not. c_associated(p_)) return
        call c_f_pointer(p_, found_)
        res = found_
    end function

    recursive function f_step_input(s, f, stat, errmsg) result(res)
        class(ctn_step), intent(in) :: s
        integer, intent(in) :: f
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_tensor) :: res
        res = c_step_input(c_loc(here), c_step(address_of(s)), int(f, c_int))
        call settle_tensor(res, stat, errmsg)
    end function

    recursive subroutine f_report(s, name, value, stat, errmsg)
        type(ctn_step), intent(in) :: s
        character(*), intent(in) :: name
        type(ctn_tensor), intent(in) :: value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_report(c_step(address_of(s)), chars(name), value)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_report_ratio(s, name, above, below, stat, errmsg)
        type(ctn_step), intent(in) :: s
        character(*), intent(in) :: name
        type(ctn_tensor), intent(in) :: above
        type(ctn_tensor), intent(in) :: below
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_report_ratio(c_step(address_of(s)), chars(name), above, below)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_report_weight(s, weight, stat, errmsg)
        type(ctn_step), intent(in) :: s
        real(c_double), intent(in) :: weight
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_report_weight(c_step(address_of(s)), weight)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_report_targets(s, f, ignore, stat, errmsg)
        type(ctn_step), intent(in) :: s
        integer, intent(in) :: f
        integer, intent(in) :: ignore
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_report_targets(c_step(address_of(s)), int(f, c_int), int(ignore, c_int64_t))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_report_metric(s, name, y, t, metric, stat, errmsg)
        type(ctn_step), intent(in) :: s
        character(*), intent(in) :: name
        type(ctn_tensor), intent(in) :: y
        type(ctn_tensor), intent(in) :: t
        character(*), intent(in), optional :: metric
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable :: metric_(:)
        integer(c_int) :: st_
        call set_chars(metric_, metric)
        st_ = c_report_metric(c_step(address_of(s)), chars(name), metric_, y, t)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_new(tr, opt, loader, loss, net, epochs, iterations, seconds, &
                accumulate, out, stat, errmsg)
        type(ctn_trainer), intent(inout) :: tr
        type(ctn_optim), intent(in) :: opt
        type(ctn_loader), intent(in) :: loader
        class(ctn_loss), intent(inout), target :: loss
        type(ctn_module), intent(in), optional :: net
        integer, intent(in), optional :: epochs
        integer, intent(in), optional :: iterations
        real(c_double), intent(in), optional :: seconds
        integer, intent(in), optional :: accumulate
        character(*), intent(in), optional :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_trainer) :: tr_
        type(holder), pointer :: loss_
        type(ctn_trainer_opt) :: opt_
        type(texts), target :: out_
        integer(c_int) :: st_
        allocate (loss_)
        loss_%it => loss
        if (present(net)) opt_%net = c_module(address_of(net))
        if (present(epochs)) opt_%epochs = epochs
        if (present(iterations)) opt_%iterations = iterations
        if (present(seconds)) opt_%seconds = seconds
        if (present(accumulate)) opt_%accumulate = accumulate
        if (present(out)) then
            call out_%set([out])
            opt_%out = out_%p(1)
        end if
        st_ = c_trainer_new(tr_, c_optim(address_of(opt)), c_loader(address_of(loader)), &
                c_funloc(call_loss), c_loc(loss_), opt_)
        if (st_ >= 0) then
            call own(tr, tr_%p, c_funloc(c_trainer_free))
            call need(tr, opt)
            call need(tr, loader)
            if (present(net)) call need(tr, net)
            call keep(tr, loss_)
        end if
        if (st_ < 0) then
            deallocate (loss_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_add_optim(tr, name, opt, loss, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        type(ctn_optim), intent(in) :: opt
        class(ctn_loss), intent(inout), target :: loss
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(holder), pointer :: loss_
        integer(c_int) :: st_
        allocate (loss_)
        loss_%it => loss
        st_ = c_trainer_add_optim(c_trainer(address_of(tr)), chars(name), &
                c_optim(address_of(opt)), c_funloc(call_loss), c_loc(loss_))
        deallocate (loss_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_run(tr, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_trainer_run(c_trainer(address_of(tr)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_stop(tr, why)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in), optional :: why
        type(texts), pointer :: why_
        allocate (why_)
        why_%p = [c_null_ptr]
        if (present(why)) deallocate (why_%p)
        if (present(why)) call why_%set([why])
        call c_trainer_stop(c_trainer(address_of(tr)), why_%p(1))
        call keep(tr, why_)
    end subroutine

    recursive function f_trainer_stopped(tr) result(res)
        class(ctn_trainer), intent(in) :: tr
        character(:), allocatable :: res
        res = text_of(c_trainer_stopped(c_trainer(address_of(tr))))
    end function

    recursive subroutine f_trainer_progress(tr, out)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_progress), intent(inout) :: out
        call c_trainer_progress(c_trainer(address_of(tr)), out)
    end subroutine

    recursive subroutine f_trainer_optim(tr, found)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_optim), intent(inout) :: found
        type(c_optim) :: found_
        found_ = c_trainer_optim(c_trainer(address_of(tr)))
        call borrow(found, found_%p, tr)
    end subroutine

    recursive subroutine f_trainer_loader(tr, found)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_loader), intent(inout) :: found
        type(c_loader) :: found_
        found_ = c_trainer_loader(c_trainer(address_of(tr)))
        call borrow(found, found_%p, tr)
    end subroutine

    recursive subroutine f_trainer_net(tr, found)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_module), intent(inout) :: found
        type(c_module) :: found_
        found_ = c_trainer_net(c_trainer(address_of(tr)))
        call borrow(found, found_%p, tr)
    end subroutine

    recursive function f_trainer_out(tr) result(res)
        class(ctn_trainer), intent(in) :: tr
        character(:), allocatable :: res
        res = text_of(c_trainer_out(c_trainer(address_of(tr))))
    end function

    recursive subroutine f_trainer_context(tr, found)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_context), intent(inout) :: found
        type(c_context) :: found_
        found_ = c_trainer_context(c_trainer(address_of(tr)))
        call borrow(found, found_%p, tr)
    end subroutine

    recursive subroutine f_trainer_observe(tr, name, value, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        real(c_double), intent(in) :: value
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_trainer_observe(c_trainer(address_of(tr)), chars(name), value)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_trainer_value(tr, name, value) result(res)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        real(c_double), intent(out) :: value
        integer(c_int) :: res
        res = c_trainer_value(c_trainer(address_of(tr)), chars(name), value)
    end function

    recursive function f_trainer_name(tr, i) result(res)
        class(ctn_trainer), intent(in) :: tr
        integer, intent(in) :: i
        character(:), allocatable :: res
        res = text_of(c_trainer_name(c_trainer(address_of(tr)), int(i, c_int)))
    end function

    recursive function f_trainer_rows(tr) result(res)
        class(ctn_trainer), intent(in) :: tr
        integer(c_int64_t) :: res
        res = c_trainer_rows(c_trainer(address_of(tr)))
    end function

    recursive function f_trainer_row_value(tr, row, name) result(res)
        class(ctn_trainer), intent(in) :: tr
        integer, intent(in) :: row
        character(*), intent(in) :: name
        real(c_double) :: res
        res = c_trainer_row_value(c_trainer(address_of(tr)), int(row, c_int64_t), chars(name))
    end function

    recursive subroutine f_trainer_row_progress(tr, row, out)
        class(ctn_trainer), intent(in) :: tr
        integer, intent(in) :: row
        type(ctn_progress), intent(inout) :: out
        call c_trainer_row_progress(c_trainer(address_of(tr)), int(row, c_int64_t), out)
    end subroutine

    recursive subroutine f_extend_evaluator(tr, loader, loss, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_loader), intent(in) :: loader
        class(ctn_loss), intent(inout), target :: loss
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(holder), pointer :: loss_
        integer(c_int) :: st_
        allocate (loss_)
        loss_%it => loss
        st_ = c_extend_evaluator(c_trainer(address_of(tr)), when, c_loader(address_of(loader)), &
                c_funloc(call_loss), c_loc(loss_))
        if (st_ >= 0) then
            call need(tr, loader)
            call keep(tr, loss_)
        end if
        if (st_ < 0) then
            deallocate (loss_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_evaluate(ctx, loader, loss, fn, stat, errmsg)
        type(ctn_context), intent(in) :: ctx
        type(ctn_loader), intent(in) :: loader
        class(ctn_loss), intent(inout), target :: loss
        class(ctn_listener), intent(inout), target :: fn
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(holder), pointer :: loss_
        type(holder), pointer :: fn_
        integer(c_int) :: st_
        allocate (loss_)
        loss_%it => loss
        allocate (fn_)
        fn_%it => fn
        st_ = c_evaluate(c_context(address_of(ctx)), c_loader(address_of(loader)), &
                c_funloc(call_loss), c_loc(loss_), c_funloc(call_listener), c_loc(fn_))
        deallocate (loss_)
        deallocate (fn_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_log(tr, when, file, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: file
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable :: file_(:)
        integer(c_int) :: st_
        call set_chars(file_, file)
        st_ = c_extend_log(c_trainer(address_of(tr)), when, file_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_progress(tr, when, write, user, terminal, columns, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        type(c_funptr), intent(in), optional :: write
        type(c_ptr), intent(in), optional :: user
        integer, intent(in), optional :: terminal
        integer, intent(in), optional :: columns
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_show_opt) :: opt_
        integer(c_int) :: st_
        if (present(write)) opt_%write = write
        if (present(user)) opt_%user = user
        if (present(terminal)) opt_%terminal = terminal
        if (present(columns)) opt_%columns = columns
        st_ = c_extend_progress(c_trainer(address_of(tr)), when, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_print(tr, when, names, write, user, terminal, columns, stat, &
                errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: names(:)
        type(c_funptr), intent(in), optional :: write
        type(c_ptr), intent(in), optional :: user
        integer, intent(in), optional :: terminal
        integer, intent(in), optional :: columns
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(texts), target :: names_
        type(ctn_show_opt) :: opt_
        integer(c_int) :: st_
        if (present(names)) call names_%set(names)
        if (present(write)) opt_%write = write
        if (present(user)) opt_%user = user
        if (present(terminal)) opt_%terminal = terminal
        if (present(columns)) opt_%columns = columns
        st_ = c_extend_print(c_trainer(address_of(tr)), when, names_%p, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_plot(tr, names, file, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: names(:)
        character(*), intent(in) :: file
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(texts), target :: names_
        integer(c_int) :: st_
        call names_%set(names)
        st_ = c_extend_plot(c_trainer(address_of(tr)), when, names_%p, chars(file))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_tensorboard(tr, dir, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: dir
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_tensorboard(c_trainer(address_of(tr)), when, chars(dir))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_html(tr, file, title, facts, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: file
        character(*), intent(in) :: title
        character(*), intent(in) :: facts(:)
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(texts), target :: facts_
        integer(c_int) :: st_
        call facts_%set(facts)
        st_ = c_extend_html(c_trainer(address_of(tr)), when, chars(file), chars(title), facts_%p)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_schedule(tr, hyper, s, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: hyper
        type(ctn_sched_opt), intent(in) :: s
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_schedule(c_trainer(address_of(tr)), chars(hyper), s)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_plateau(tr, hyper, when, key, larger, patience, factor, min, &
                difference, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: hyper
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: key
        integer, intent(in), optional :: larger
        integer, intent(in), optional :: patience
        real(c_double), intent(in), optional :: factor
        real(c_double), intent(in), optional :: min
        real(c_double), intent(in), optional :: difference
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_patience_opt) :: opt_
        type(texts), target :: key_
        integer(c_int) :: st_
        if (present(key)) then
            call key_%set([key])
            opt_%key = key_%p(1)
        end if
        if (present(larger)) opt_%larger = larger
        if (present(patience)) opt_%patience = patience
        if (present(factor)) opt_%factor = factor
        if (present(min)) opt_%min = min
        if (present(difference)) opt_%difference = difference
        st_ = c_extend_plateau(c_trainer(address_of(tr)), when, chars(hyper), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_early_stop(tr, when, key, larger, patience, factor, min, &
                difference, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: key
        integer, intent(in), optional :: larger
        integer, intent(in), optional :: patience
        real(c_double), intent(in), optional :: factor
        real(c_double), intent(in), optional :: min
        real(c_double), intent(in), optional :: difference
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_patience_opt) :: opt_
        type(texts), target :: key_
        integer(c_int) :: st_
        if (present(key)) then
            call key_%set([key])
            opt_%key = key_%p(1)
        end if
        if (present(larger)) opt_%larger = larger
        if (present(patience)) opt_%patience = patience
        if (present(factor)) opt_%factor = factor
        if (present(min)) opt_%min = min
        if (present(difference)) opt_%difference = difference
        st_ = c_extend_early_stop(c_trainer(address_of(tr)), when, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_observe(tr, name, value, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        class(ctn_observer), intent(inout), target :: value
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(holder), pointer :: value_
        integer(c_int) :: st_
        allocate (value_)
        value_%it => value
        st_ = c_extend_observe(c_trainer(address_of(tr)), when, chars(name), &
                c_funloc(call_observer), c_loc(value_))
        if (st_ >= 0) then
            call keep(tr, value_)
        end if
        if (st_ < 0) then
            deallocate (value_)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_param_stats(tr, when, pattern, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: pattern
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable :: pattern_(:)
        integer(c_int) :: st_
        call set_chars(pattern_, pattern)
        st_ = c_extend_param_stats(c_trainer(address_of(tr)), when, pattern_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_param_plot(tr, pattern, file, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: pattern
        character(*), intent(in) :: file
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_param_plot(c_trainer(address_of(tr)), when, chars(pattern), chars(file))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_fail_on_nonfinite(tr, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_fail_on_nonfinite(c_trainer(address_of(tr)), when)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_on_nonfinite(tr, when, policy, max_skips, max_rewinds, factor, &
                stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        integer(c_int), intent(in), optional :: policy
        integer, intent(in), optional :: max_skips
        integer, intent(in), optional :: max_rewinds
        real(c_double), intent(in), optional :: factor
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_nonfinite_opt) :: opt_
        integer(c_int) :: st_
        if (present(policy)) opt_%policy = policy
        if (present(max_skips)) opt_%max_skips = max_skips
        if (present(max_rewinds)) opt_%max_rewinds = max_rewinds
        if (present(factor)) opt_%factor = factor
        st_ = c_extend_on_nonfinite(c_trainer(address_of(tr)), when, opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_spikes(tr, deviations, window, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        real(c_double), intent(in), optional :: deviations
        integer, intent(in), optional :: window
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_spike_opt) :: opt_
        integer(c_int) :: st_
        if (present(deviations)) opt_%deviations = deviations
        if (present(window)) opt_%window = window
        st_ = c_extend_spikes(c_trainer(address_of(tr)), opt_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_unfreeze(tr, epoch, statistics, pattern, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        integer, intent(in) :: epoch
        integer, intent(in) :: statistics
        character(*), intent(in), optional :: pattern
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable :: pattern_(:)
        integer(c_int) :: st_
        call set_chars(pattern_, pattern)
        st_ = c_extend_unfreeze(c_trainer(address_of(tr)), int(epoch, c_int64_t), pattern_, &
                int(statistics, c_int))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_average(tr, rate, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        real(c_double), intent(in) :: rate
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_average(c_trainer(address_of(tr)), rate)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_swa(tr, start, every, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        integer, intent(in) :: start
        integer, intent(in) :: every
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_swa(c_trainer(address_of(tr)), int(start, c_int64_t), int(every, c_int64_t))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_weights(tr, when, file, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        character(*), intent(in), optional :: file
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(kind=c_char), allocatable :: file_(:)
        integer(c_int) :: st_
        call set_chars(file_, file)
        st_ = c_extend_weights(c_trainer(address_of(tr)), when, file_)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_replicas(tr, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_replicas(c_trainer(address_of(tr)), when)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_state(tr, when, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in), optional :: when
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_state(c_trainer(address_of(tr)), when)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_save(tr, dir, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: dir
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_trainer_save(c_trainer(address_of(tr)), chars(dir))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_load(tr, dir, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: dir
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_trainer_load(c_trainer(address_of(tr)), chars(dir))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_memory_new(out, stat, errmsg)
        type(ctn_memory), intent(inout) :: out
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_memory) :: out_
        integer(c_int) :: st_
        st_ = c_memory_new(out_)
        if (st_ >= 0) then
            call own(out, out_%p, c_funloc(c_memory_free))
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_extend_memory(tr, when, m, stat, errmsg)
        type(ctn_trainer), intent(in) :: tr
        type(ctn_trigger), intent(in) :: when
        type(ctn_memory), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_extend_memory(c_trainer(address_of(tr)), when, c_memory(address_of(m)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_trainer_recall(tr, m, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        type(ctn_memory), intent(in) :: m
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_trainer_recall(c_trainer(address_of(tr)), c_memory(address_of(m)))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_states_prune(dir, keep, stat, errmsg)
        character(*), intent(in) :: dir
        integer, intent(in) :: keep
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_states_prune(chars(dir), int(keep, c_int64_t))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_state_export(path, file, stat, errmsg)
        character(*), intent(in) :: path
        character(*), intent(in) :: file
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_state_export(chars(path), chars(file))
        call settle(st_, stat, errmsg)
    end subroutine

    recursive function f_tune_folder(stat, errmsg) result(res)
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        character(:), allocatable :: res
        integer(c_int) :: n_
        character(kind=c_char), allocatable, target :: buf_(:)
        allocate (buf_(1))
        n_ = c_tune_folder(buf_, ubound(buf_, 1, kind=c_size_t))
        if (n_ >= 0) then
            deallocate (buf_)
            allocate (buf_(n_ + 1))
            n_ = c_tune_folder(buf_, ubound(buf_, 1, kind=c_size_t))
        end if
        res = ''
        if (n_ >= 0) res = text_of(c_loc(buf_))
        call settle(merge(c_error_status(), CTN_OK, n_ < 0), stat, errmsg)
    end function

    recursive subroutine f_tune_clear(files, stat, errmsg)
        integer(c_int64_t), intent(out), optional :: files
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        integer(c_int) :: st_
        st_ = c_tune_clear(files)
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_new(m, ctx, name, classes, in_channels, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: name
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_zoo_opt) :: opt_
        integer(c_int) :: st_
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        st_ = c_zoo_new(m_, c_context(address_of(ctx)), chars(name), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_mlp(m, ctx, size, activation, dropout, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: size(:)
        character(*), intent(in), optional :: activation
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_mlp_opt) :: opt_
        integer(c_int64_t), allocatable, target :: size_(:)
        integer(c_int) :: st_
        if (present(size)) then
            allocate (size_, source=int(size, c_int64_t))
            opt_%size = c_loc(size_)
            opt_%n = ubound(size, 1)
        end if
        if (present(activation)) opt_%activation = op_named(activation)
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_mlp(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_lenet5(m, ctx, classes, in_channels, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_lenet5_opt) :: opt_
        integer(c_int) :: st_
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        st_ = c_zoo_lenet5(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_resnet(m, ctx, depth, classes, in_channels, width, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: depth
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: width
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_resnet_opt) :: opt_
        integer(c_int) :: st_
        if (present(depth)) opt_%depth = depth
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(width)) opt_%width = width
        st_ = c_zoo_resnet(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_resnet_cifar(m, ctx, depth, classes, in_channels, width, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: depth
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: width
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_resnet_cifar_opt) :: opt_
        integer(c_int) :: st_
        if (present(depth)) opt_%depth = depth
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(width)) opt_%width = width
        st_ = c_zoo_resnet_cifar(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_mobilenet_v2(m, ctx, classes, in_channels, width, dropout, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        real(c_double), intent(in), optional :: width
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_mobilenet_v2_opt) :: opt_
        integer(c_int) :: st_
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(width)) opt_%width = width
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_mobilenet_v2(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_vgg(m, ctx, depth, classes, in_channels, dropout, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: depth
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_vgg_opt) :: opt_
        integer(c_int) :: st_
        if (present(depth)) opt_%depth = depth
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_vgg(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_googlenet(m, ctx, classes, in_channels, batch_norm, no_aux, &
                dropout, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: batch_norm
        integer, intent(in), optional :: no_aux
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_googlenet_opt) :: opt_
        integer(c_int) :: st_
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(batch_norm)) opt_%batch_norm = batch_norm
        if (present(no_aux)) opt_%no_aux = no_aux
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_googlenet(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_unet(m, ctx, spatial, in_channels, out_channels, width, depth, &
                stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: spatial
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: out_channels
        integer, intent(in), optional :: width
        integer, intent(in), optional :: depth
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_unet_opt) :: opt_
        integer(c_int) :: st_
        if (present(spatial)) opt_%spatial = spatial
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(out_channels)) opt_%out_channels = out_channels
        if (present(width)) opt_%width = width
        if (present(depth)) opt_%depth = depth
        st_ = c_zoo_unet(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_fno(m, ctx, spatial, in_channels, out_channels, width, modes, &
                layers, hidden, pad, no_grid, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: spatial
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: out_channels
        integer, intent(in), optional :: width
        integer, intent(in), optional :: modes(:)
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: pad
        integer, intent(in), optional :: no_grid
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_fno_opt) :: opt_
        logical :: ok_
        integer(c_int) :: st_
        if (present(spatial)) opt_%spatial = spatial
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(out_channels)) opt_%out_channels = out_channels
        if (present(width)) opt_%width = width
        ok_ = .true.
        if (present(modes)) call fill(ok_, 'zoo_fno: modes', &
            opt_%modes, modes)
        if (present(layers)) opt_%layers = layers
        if (present(hidden)) opt_%hidden = hidden
        if (present(pad)) opt_%pad = pad
        if (present(no_grid)) opt_%no_grid = no_grid
        st_ = CTN_ESHAPE
        if (ok_) st_ = c_zoo_fno(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_gpt(m, ctx, vocabulary, block, width, layers, heads, dropout, &
                untied, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: vocabulary
        integer, intent(in), optional :: block
        integer, intent(in), optional :: width
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: heads
        real(c_double), intent(in), optional :: dropout
        integer, intent(in), optional :: untied
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_gpt_opt) :: opt_
        integer(c_int) :: st_
        if (present(vocabulary)) opt_%vocabulary = vocabulary
        if (present(block)) opt_%block = block
        if (present(width)) opt_%width = width
        if (present(layers)) opt_%layers = layers
        if (present(heads)) opt_%heads = heads
        if (present(dropout)) opt_%dropout = dropout
        if (present(untied)) opt_%untied = untied
        st_ = c_zoo_gpt(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_llama(m, ctx, vocabulary, block, width, hidden, layers, heads, &
                kv_heads, head_width, rotary_base, eps, window, untied, qkv_bias, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: vocabulary
        integer, intent(in), optional :: block
        integer, intent(in), optional :: width
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: heads
        integer, intent(in), optional :: kv_heads
        integer, intent(in), optional :: head_width
        real(c_double), intent(in), optional :: rotary_base
        real(c_double), intent(in), optional :: eps
        integer, intent(in), optional :: window
        integer, intent(in), optional :: untied
        integer, intent(in), optional :: qkv_bias
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_llama_opt) :: opt_
        integer(c_int) :: st_
        if (present(vocabulary)) opt_%vocabulary = vocabulary
        if (present(block)) opt_%block = block
        if (present(width)) opt_%width = width
        if (present(hidden)) opt_%hidden = hidden
        if (present(layers)) opt_%layers = layers
        if (present(heads)) opt_%heads = heads
        if (present(kv_heads)) opt_%kv_heads = kv_heads
        if (present(head_width)) opt_%head_width = head_width
        if (present(rotary_base)) opt_%rotary_base = rotary_base
        if (present(eps)) opt_%eps = eps
        if (present(window)) opt_%window = window
        if (present(untied)) opt_%untied = untied
        if (present(qkv_bias)) opt_%qkv_bias = qkv_bias
        st_ = c_zoo_llama(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_bert(m, ctx, vocabulary, block, types, width, hidden, layers, &
                heads, eps, classes, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: vocabulary
        integer, intent(in), optional :: block
        integer, intent(in), optional :: types
        integer, intent(in), optional :: width
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: heads
        real(c_double), intent(in), optional :: eps
        integer, intent(in), optional :: classes
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_bert_opt) :: opt_
        integer(c_int) :: st_
        if (present(vocabulary)) opt_%vocabulary = vocabulary
        if (present(block)) opt_%block = block
        if (present(types)) opt_%types = types
        if (present(width)) opt_%width = width
        if (present(hidden)) opt_%hidden = hidden
        if (present(layers)) opt_%layers = layers
        if (present(heads)) opt_%heads = heads
        if (present(eps)) opt_%eps = eps
        if (present(classes)) opt_%classes = classes
        st_ = c_zoo_bert(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_vit(m, ctx, classes, in_channels, image, patch, width, hidden, &
                layers, heads, eps, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: image
        integer, intent(in), optional :: patch
        integer, intent(in), optional :: width
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: heads
        real(c_double), intent(in), optional :: eps
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_vit_opt) :: opt_
        integer(c_int) :: st_
        if (present(classes)) opt_%classes = classes
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(image)) opt_%image = image
        if (present(patch)) opt_%patch = patch
        if (present(width)) opt_%width = width
        if (present(hidden)) opt_%hidden = hidden
        if (present(layers)) opt_%layers = layers
        if (present(heads)) opt_%heads = heads
        if (present(eps)) opt_%eps = eps
        st_ = c_zoo_vit(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_seq2seq(m, ctx, vocabulary, target_vocabulary, width, hidden, &
                layers, bidirectional, dropout, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: vocabulary
        integer, intent(in), optional :: target_vocabulary
        integer, intent(in), optional :: width
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: layers
        integer, intent(in), optional :: bidirectional
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_seq2seq_opt) :: opt_
        integer(c_int) :: st_
        if (present(vocabulary)) opt_%vocabulary = vocabulary
        if (present(target_vocabulary)) opt_%target_vocabulary = target_vocabulary
        if (present(width)) opt_%width = width
        if (present(hidden)) opt_%hidden = hidden
        if (present(layers)) opt_%layers = layers
        if (present(bidirectional)) opt_%bidirectional = bidirectional
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_seq2seq(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_gcn(m, ctx, in_channels, classes, hidden, layers, dropout, stat, &
                errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: layers
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_gcn_opt) :: opt_
        integer(c_int) :: st_
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(classes)) opt_%classes = classes
        if (present(hidden)) opt_%hidden = hidden
        if (present(layers)) opt_%layers = layers
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_gcn(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_gat(m, ctx, in_channels, classes, hidden, heads, layers, dropout, &
                stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: in_channels
        integer, intent(in), optional :: classes
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: heads
        integer, intent(in), optional :: layers
        real(c_double), intent(in), optional :: dropout
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_gat_opt) :: opt_
        integer(c_int) :: st_
        if (present(in_channels)) opt_%in_channels = in_channels
        if (present(classes)) opt_%classes = classes
        if (present(hidden)) opt_%hidden = hidden
        if (present(heads)) opt_%heads = heads
        if (present(layers)) opt_%layers = layers
        if (present(dropout)) opt_%dropout = dropout
        st_ = c_zoo_gat(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_meshgraphnet(m, ctx, node_in, edge_in, out, hidden, steps, &
                mlp_layers, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        integer, intent(in), optional :: node_in
        integer, intent(in), optional :: edge_in
        integer, intent(in), optional :: out
        integer, intent(in), optional :: hidden
        integer, intent(in), optional :: steps
        integer, intent(in), optional :: mlp_layers
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        type(ctn_meshgraphnet_opt) :: opt_
        integer(c_int) :: st_
        if (present(node_in)) opt_%node_in = node_in
        if (present(edge_in)) opt_%edge_in = edge_in
        if (present(out)) opt_%out = out
        if (present(hidden)) opt_%hidden = hidden
        if (present(steps)) opt_%steps = steps
        if (present(mlp_layers)) opt_%mlp_layers = mlp_layers
        st_ = c_zoo_meshgraphnet(m_, c_context(address_of(ctx)), opt_)
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    recursive subroutine f_zoo_open(m, ctx, path, stat, errmsg)
        type(ctn_module), intent(inout) :: m
        type(ctn_context), intent(in) :: ctx
        character(*), intent(in) :: path
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(c_module) :: m_
        integer(c_int) :: st_
        st_ = c_zoo_open(m_, c_context(address_of(ctx)), chars(path))
        if (st_ >= 0) then
            call own(m, m_%p, c_funloc(c_module_free))
            call need(m, ctx)
        end if
        call settle(st_, stat, errmsg)
    end subroutine

    subroutine f_comm_free(self)
        class(ctn_comm), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_retained_free(self)
        class(ctn_retained), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_dataset_free(self)
        class(ctn_dataset), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_sampler_free(self)
        class(ctn_sampler), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_loader_free(self)
        class(ctn_loader), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_dist_chain_free(self)
        class(ctn_dist_chain), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_dist_grid_free(self)
        class(ctn_dist_grid), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_generator_free(self)
        class(ctn_generator), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_weights_free(self)
        class(ctn_weights), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_module_free(self)
        class(ctn_module), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_optim_free(self)
        class(ctn_optim), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_context_free(self)
        class(ctn_context), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_var_free(self)
        class(ctn_var), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_tokenizer_free(self)
        class(ctn_tokenizer), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_trainer_free(self)
        class(ctn_trainer), intent(inout) :: self
        call drop(self)
    end subroutine

    subroutine f_memory_free(self)
        class(ctn_memory), intent(inout) :: self
        call drop(self)
    end subroutine

    ! The op of one tensor with this name, NULL if there is none.
    function op_named(name) result(op)
        character(*), intent(in) :: name
        type(c_funptr) :: op
        select case (name)
        case ('relu')
            op = c_funloc(c_relu)
        case ('global_avg_pool')
            op = c_funloc(c_global_avg_pool)
        case ('cholesky')
            op = c_funloc(c_cholesky)
        case ('inverse')
            op = c_funloc(c_inverse)
        case ('det')
            op = c_funloc(c_det)
        case ('inverse_sqrt')
            op = c_funloc(c_inverse_sqrt)
        case ('decov')
            op = c_funloc(c_decov)
        case ('neg')
            op = c_funloc(c_neg)
        case ('abs')
            op = c_funloc(c_abs)
        case ('sign')
            op = c_funloc(c_sign)
        case ('square')
            op = c_funloc(c_square)
        case ('sqrt')
            op = c_funloc(c_sqrt)
        case ('rsqrt')
            op = c_funloc(c_rsqrt)
        case ('exp')
            op = c_funloc(c_exp)
        case ('log')
            op = c_funloc(c_log)
        case ('sin')
            op = c_funloc(c_sin)
        case ('cos')
            op = c_funloc(c_cos)
        case ('tan')
            op = c_funloc(c_tan)
        case ('arcsin')
            op = c_funloc(c_arcsin)
        case ('arccos')
            op = c_funloc(c_arccos)
        case ('arctan')
            op = c_funloc(c_arctan)
        case ('sinh')
            op = c_funloc(c_sinh)
        case ('cosh')
            op = c_funloc(c_cosh)
        case ('arcsinh')
            op = c_funloc(c_arcsinh)
        case ('arccosh')
            op = c_funloc(c_arccosh)
        case ('arctanh')
            op = c_funloc(c_arctanh)
        case ('expm1')
            op = c_funloc(c_expm1)
        case ('log1p')
            op = c_funloc(c_log1p)
        case ('log2')
            op = c_funloc(c_log2)
        case ('log10')
            op = c_funloc(c_log10)
        case ('floor')
            op = c_funloc(c_floor)
        case ('ceil')
            op = c_funloc(c_ceil)
        case ('round')
            op = c_funloc(c_round)
        case ('trunc')
            op = c_funloc(c_trunc)
        case ('erf')
            op = c_funloc(c_erf)
        case ('erfc')
            op = c_funloc(c_erfc)
        case ('erfcx')
            op = c_funloc(c_erfcx)
        case ('erfinv')
            op = c_funloc(c_erfinv)
        case ('erfcinv')
            op = c_funloc(c_erfcinv)
        case ('ndtr')
            op = c_funloc(c_ndtr)
        case ('log_ndtr')
            op = c_funloc(c_log_ndtr)
        case ('ndtri')
            op = c_funloc(c_ndtri)
        case ('lgamma')
            op = c_funloc(c_lgamma)
        case ('digamma')
            op = c_funloc(c_digamma)
        case ('sigmoid')
            op = c_funloc(c_sigmoid)
        case ('tanh')
            op = c_funloc(c_tanh)
        case ('softplus')
            op = c_funloc(c_softplus)
        case ('gelu')
            op = c_funloc(c_gelu)
        case ('gelu_tanh')
            op = c_funloc(c_gelu_tanh)
        case ('swish')
            op = c_funloc(c_swish)
        case ('selu')
            op = c_funloc(c_selu)
        case ('hard_sigmoid')
            op = c_funloc(c_hard_sigmoid)
        case ('hard_swish')
            op = c_funloc(c_hard_swish)
        case ('mish')
            op = c_funloc(c_mish)
        case ('logical_not')
            op = c_funloc(c_logical_not)
        case default
            op = c_null_funptr
        end select
    end function

    ! ---- procedures that C calls

    recursive function call_loss(self, s) bind(C, name='') result(t)
        type(c_ptr), value :: self
        type(c_step), value :: s
        type(ctn_tensor) :: t
        type(holder), pointer :: held
        type(ctn_step) :: step
        call c_f_pointer(self, held)
        call borrow(step, s%p)
        select type (it => held%it)
        class is (ctn_loss)
            t = it%of(step)
        end select
    end function

    recursive function call_order(user, at) bind(C, name='') result(index)
        type(c_ptr), value :: user, at
        integer(c_int64_t) :: index
        type(holder), pointer :: held
        type(ctn_sampler_state), pointer :: state
        call c_f_pointer(user, held)
        call c_f_pointer(at, state)
        index = -1
        select type (it => held%it)
        class is (ctn_order)
            index = it%sample(state)
        end select
    end function

    recursive function call_layer(self, m, x) bind(C, name='') result(y)
        type(c_ptr), value :: self
        type(c_module), value :: m
        type(ctn_tensor), value :: x
        type(ctn_tensor) :: y
        type(holder), pointer :: held
        type(ctn_module) :: module
        call c_f_pointer(self, held)
        call borrow(module, m%p)
        select type (it => held%it)
        class is (ctn_layer)
            y = it%forward(module, x)
        end select
    end function

    recursive function call_layer_multi(self, m, x) bind(C, name='') result(y)
        type(c_ptr), value :: self
        type(c_module), value :: m
        type(ctn_tensors), value :: x
        type(ctn_tensors) :: y
        type(holder), pointer :: held
        type(ctn_module) :: module
        call c_f_pointer(self, held)
        call borrow(module, m%p)
        select type (it => held%it)
        class is (ctn_layer_multi)
            y = it%forward(module, x)
        end select
    end function

    recursive function call_listener(user, name, value) bind(C, name='') result(status)
        type(c_ptr), value :: user, name
        real(c_double), value :: value
        integer(c_int) :: status
        type(holder), pointer :: held
        call c_f_pointer(user, held)
        select type (it => held%it)
        class is (ctn_listener)
            call it%hear(text_of(name), value)
        end select
        status = CTN_OK
    end function

    recursive function call_observer(self, tr) bind(C, name='') result(value)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        real(c_double) :: value
        type(holder), pointer :: held
        type(ctn_trainer) :: trainer
        call c_f_pointer(self, held)
        call borrow(trainer, tr%p)
        value = 0
        select type (it => held%it)
        class is (ctn_observer)
            value = it%value(trainer)
        end select
    end function

    ! ---- extensions

    ! trigger: when to call action%call, CTN_EVERY_EPOCHS with n = 1 if it is left out.
    subroutine f_trainer_extend(tr, name, action, trigger, priority, rank0_only, stat, errmsg)
        class(ctn_trainer), intent(in) :: tr
        character(*), intent(in) :: name
        class(ctn_action), intent(inout), target :: action
        type(ctn_trigger), intent(in), optional :: trigger
        integer, intent(in), optional :: priority, rank0_only
        integer, intent(out), optional :: stat
        character(*), intent(inout), optional :: errmsg
        type(ctn_extension) :: e
        type(texts), target :: name_
        type(holder), pointer :: held
        integer(c_int) :: st
        call name_%set([name])
        allocate (held)
        held%it => action
        e%name = name_%p(1)
        e%trigger = ctn_trigger(kind=CTN_EVERY_EPOCHS, n=1)
        if (present(trigger)) e%trigger = trigger
        if (present(priority)) e%priority = priority
        if (present(rank0_only)) e%rank0_only = rank0_only
        e%start = c_funloc(start_action)
        e%call = c_funloc(call_action)
        e%finish = c_funloc(finish_action)
        e%self = c_loc(held)
        st = c_trainer_extend(c_trainer(address_of(tr)), e)
        if (st >= 0) call keep(tr, held)
        if (st < 0) deallocate (held)
        call settle(st, stat, errmsg)
    end subroutine

    recursive function start_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 1)
    end function

    recursive function call_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 2)
    end function

    recursive function finish_action(self, tr) bind(C, name='') result(status)
        type(c_ptr), value :: self
        type(c_trainer), value :: tr
        integer(c_int) :: status
        status = run_action(self, tr%p, 3)
    end function

    recursive function run_action(self, tr, which) result(status)
        type(c_ptr), intent(in) :: self, tr
        integer, intent(in) :: which
        integer(c_int) :: status
        type(holder), pointer :: held
        type(ctn_trainer) :: trainer
        call c_f_pointer(self, held)
        call borrow(trainer, tr)
        status = CTN_OK
        select type (it => held%it)
        class is (ctn_action)
            if (which == 1) call it%start(trainer, status)
            if (which == 2) call it%call(trainer, status)
            if (which == 3) call it%finish(trainer, status)
        end select
    end function

    subroutine do_nothing(self, tr, status)
        class(ctn_action), intent(inout) :: self
        type(ctn_trainer), intent(in) :: tr
        integer, intent(inout) :: status
        associate (unused_self => self, unused_tr => tr, unused_status => status)
        end associate
    end subroutine
end module

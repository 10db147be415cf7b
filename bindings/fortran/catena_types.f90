! SPDX-License-Identifier: Apache-2.0
!
! Constants, structs and tensors, as module catena passes them on.
! dev/interface writes this file from the public headers.
module catena_types
    use catena_c, only: CTN_VERSION_MAJOR, CTN_VERSION_MINOR, CTN_VERSION_PATCH, &
        CTN_HEADER_VERSION, CTN_DATA_FIELDS, CTN_RAGGED, CTN_MODEL_ABI, CTN_MAX_TENSORS, &
        CTN_MAX_IN, CTN_MAX_OUT, CTN_MAX_SPATIAL, CTN_PAD_NONE, CTN_SCHED_AT, CTN_MAX_DIMS, &
        CTN_TRIGGER_AT, CTN_OK, CTN_END, CTN_ENOMEM, CTN_EARG, CTN_ESHAPE, CTN_EDTYPE, CTN_EGONE, &
        CTN_ESTATE, CTN_EIO, CTN_EFORMAT, CTN_EUNSUPPORTED, CTN_EENGINE, CTN_ENOTFOUND, CTN_EGRAD, &
        CTN_ENONFINITE, CTN_EPEER, CTN_MODE_DEFAULT, CTN_MODE_PLANNED, CTN_MODE_EAGER, &
        CTN_PRECISION_F32, CTN_PRECISION_BF16, CTN_PRECISION_F16, CTN_PRECISION_F64, CTN_PARAM, &
        CTN_STATE, CTN_LAYOUT_ROW_MAJOR, CTN_LAYOUT_CHANNELS_LAST, CTN_LAYOUT_ENGINE, &
        CTN_LAYOUT_STRIDED, CTN_TRAIN, CTN_TEST, CTN_DIST_OVERLAP, CTN_DIST_AFTER, &
        CTN_DIST_PER_PARAMETER, CTN_DIST_POLLS, CTN_DIST_THREAD, CTN_DIST_DEFER, &
        CTN_DIST_COMPLETE, CTN_CROP_CENTER, CTN_CROP_RANDOM, CTN_CROP_PAD, CTN_CROP_WHOLE, &
        CTN_INIT_CONSTANT, CTN_INIT_NORMAL, CTN_INIT_UNIFORM, CTN_INIT_LECUN_NORMAL, &
        CTN_INIT_LECUN_UNIFORM, CTN_INIT_GLOROT_NORMAL, CTN_INIT_GLOROT_UNIFORM, &
        CTN_INIT_HE_NORMAL, CTN_INIT_HE_UNIFORM, CTN_INIT_ORTHOGONAL, CTN_INIT_IDENTITY, &
        CTN_INIT_UPSAMPLE, CTN_INIT_DOWNSAMPLE, CTN_PREDICTS_OTHER, CTN_PREDICTS_NEXT, &
        CTN_PREDICTS_MASKED, CTN_AGGREGATE_SUM, CTN_AGGREGATE_MEAN, CTN_AGGREGATE_MAX, &
        CTN_PREC_ANY, CTN_PREC_LOW, CTN_PREC_F32, CTN_OP_RANDOM, CTN_OP_STRIDED, CTN_OP_TRAIN, &
        CTN_OP_VIEW, CTN_OP_ELEMENTWISE, CTN_OP_ORDERED, CTN_OP_UPDATE, CTN_OP_REMOTE, &
        CTN_FFT_BACKWARD, CTN_FFT_ORTHO, CTN_FFT_FORWARD, CTN_RESIZE_NEAREST, CTN_RESIZE_LINEAR, &
        CTN_REDUCTION_MEAN => CTN_MEAN, CTN_REDUCTION_SUM => CTN_SUM, CTN_NONE, CTN_PAD_ZEROS, &
        CTN_PAD_REFLECT, CTN_PAD_REPLICATE, CTN_PAD_WRAP, CTN_SCHED_CONSTANT, CTN_SCHED_STEP, &
        CTN_SCHED_EXPONENTIAL, CTN_SCHED_COSINE, CTN_SCHED_LINEAR, CTN_SCHED_POLYNOMIAL, &
        CTN_SCHED_MULTISTEP, CTN_SCHED_INVERSE, CTN_SCHED_ONE_CYCLE, CTN_SCHED_COSINE_RESTARTS, &
        CTN_F32, CTN_F64, CTN_BF16, CTN_F16, CTN_I64, CTN_I32, CTN_U8, CTN_BOOL, CTN_EVERY_EPOCHS, &
        CTN_EVERY_ITERATIONS, CTN_EVERY_SECONDS, CTN_ONCE, CTN_AT_END, CTN_WHEN_MAX, CTN_WHEN_MIN, &
        CTN_SHARE_OF_TIME, CTN_AT_EPOCHS, CTN_AT_ITERATIONS, CTN_PRIORITY_EVALUATE, &
        CTN_PRIORITY_CHANGE, CTN_PRIORITY_LOG, CTN_PRIORITY_SHOW, CTN_PRIORITY_SAVE, &
        CTN_NONFINITE_STOP, CTN_NONFINITE_SKIP, CTN_NONFINITE_REWIND, ctn_allocator, ctn_comm_opt, &
        ctn_comm_stats, ctn_context_opt, ctn_context_state, ctn_share, ctn_vars, ctn_plan_stats, &
        ctn_plan_node, ctn_field, ctn_sample, ctn_dataset_vt, ctn_idx_opt, ctn_cifar_opt, &
        ctn_sampler_state, ctn_mix_opt, ctn_loader_opt, ctn_batch, ctn_loader_stats, &
        ctn_files_opt, ctn_csv_opt, ctn_tokens_opt, ctn_mask_opt, ctn_dist_opt, ctn_dist_stats, &
        ctn_dist_halo_opt, ctn_env_entry, ctn_generator_opt, ctn_image_opt, ctn_segmentation_opt, &
        ctn_shards_opt, ctn_pack_opt, ctn_build_entry, ctn_machine, ctn_weights_save_opt, &
        ctn_weights_opt, ctn_weights_match, ctn_weights_array, ctn_weights_item, ctn_state_part, &
        ctn_model_opt, ctn_model, ctn_init, ctn_tensors, ctn_linear_opt, ctn_conv_module_opt, &
        ctn_spectral_conv_opt, ctn_batch_norm_module_opt, ctn_batch_renorm_module_opt, &
        ctn_norm_opt, ctn_rnn_module_opt, ctn_graph_conv_opt, ctn_graph_attention_opt, &
        ctn_message_passing_opt, ctn_inception_opt, ctn_inception_bn_opt, ctn_lora_opt, &
        ctn_spectral_norm_opt, ctn_onnx_opt, ctn_onnx_port, ctn_onnx_export_opt, ctn_scalar, &
        ctn_infer_args, ctn_grad_args, ctn_run_env, ctn_run_args, ctn_prepare_args, ctn_op, &
        ctn_op_args, ctn_gradcheck_input, ctn_softmax_cross_entropy_opt, ctn_conv_opt, &
        ctn_pool_opt, ctn_roi_opt, ctn_batch_norm_opt, ctn_decorrelated_batch_norm_opt, &
        ctn_batch_renorm_opt, ctn_clustering_opt, ctn_attention_opt, ctn_rotary_opt, &
        ctn_rnn_weights, ctn_rnn_opt, ctn_ctc_opt, ctn_crf_opt, ctn_sgd_opt, ctn_adam_opt, &
        ctn_rmsprop_opt, ctn_adagrad_opt, ctn_adadelta_opt, ctn_adamax_opt, ctn_nadam_opt, &
        ctn_radam_opt, ctn_lion_opt, ctn_lamb_opt, ctn_lars_opt, ctn_adabound_opt, &
        ctn_smorms3_opt, ctn_msvag_opt, ctn_adafactor_opt, ctn_lbfgs_opt, ctn_group_opt, &
        ctn_loss_scale_opt, ctn_sched_opt, ctn_desc, ctn_tokenizer_opt, ctn_decode_state, &
        ctn_chat_opt, ctn_tokens_pack_opt, ctn_trainer_opt, ctn_progress, ctn_trigger, &
        ctn_extension, ctn_show_opt, ctn_patience_opt, ctn_nonfinite_opt, ctn_spike_opt, &
        ctn_state_info, ctn_state_array, ctn_tune_file, ctn_zoo_opt, ctn_mlp_opt, ctn_lenet5_opt, &
        ctn_resnet_opt, ctn_resnet_cifar_opt, ctn_mobilenet_v2_opt, ctn_vgg_opt, &
        ctn_googlenet_opt, ctn_unet_opt, ctn_fno_opt, ctn_gpt_opt, ctn_llama_opt, ctn_bert_opt, &
        ctn_vit_opt, ctn_seq2seq_opt, ctn_gcn_opt, ctn_gat_opt, ctn_meshgraphnet_opt, ctn_tensor
    implicit none
    public
end module

# Bash completion of lattn.
_lattn()
{
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local words= files=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(
            compgen -W 'devices prefill decode verify bench --help --version' -- "$word")
        return
    fi
    case $before in
    --backend) words='auto reference opencl cuda hip' ;;
    --decay) words='recurrence vllm' ;;
    --precision) words='f32 tf32' ;;
    --op) words='prefill decode' ;;
    --dtype) words='f32 f16 bf16' ;;
    --device | --shape) return ;;
    -o | --output) files=yes ;;
    *)
        case ${COMP_WORDS[1]} in
        devices) words='--json' ;;
        prefill)
            words='-o --backend --device --decay --precision --block-states'
            files=yes
            ;;
        decode)
            words='-o --backend --device'
            files=yes
            ;;
        verify)
            words='--backend --device --json'
            files=yes
            ;;
        bench) words='--backend --device --op --shape --sweep --dtype --precision --json' ;;
        esac
        words+=' --help'
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    if [[ $files && $word != -* ]]; then
        compopt -o filenames
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$word")
    fi
}
complete -F _lattn lattn

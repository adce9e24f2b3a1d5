# Sourced by the scripts beside it: an environment in which no variable of this machine hides what a user would meet.
# What the package clients need to reach their registries stays.

# clean_environment HOME: fills the array `clean` with a command that runs others in that environment.
clean_environment() {
    clean=(env -i HOME="$1" PATH="$PATH" LANG="${LANG:-C.UTF-8}")
    local name
    for name in $(compgen -e); do
        case ${name,,} in
            pip_* | npm_config_* | node_extra_ca_certs | *_proxy | ssl_cert_file | ssl_cert_dir | requests_ca_bundle | curl_ca_bundle | xdg_cache_home | xdg_config_home)
                clean+=("$name=${!name}") ;;
        esac
    done
}

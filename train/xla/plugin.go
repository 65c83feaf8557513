package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// PluginVariable is the environment variable that may name the plugin, or folders that hold it.
const PluginVariable = "PJRT_PLUGIN_LIBRARY_PATH"

// pluginPatterns are the names of plugins for NVIDIA cards within a folder.
var pluginPatterns = []string{
	filepath.Join("jax_plugins", "xla_cuda*", "xla_cuda_plugin.so"),
	"xla_cuda_plugin.so",
	"pjrt_c_api_*cuda*_plugin.so",
}

// FindPlugin returns the path of the plugin: the given one; else what PJRT_PLUGIN_LIBRARY_PATH names, a file or folders;
// else one that is installed in a Python environment: the active one, that of python3 on the path, the user's, or the
// system's.
func FindPlugin(given string, getenv func(string) string) (string, error) {
	if given != "" {
		return pluginAt(given, "the given path")
	}
	if list := getenv(PluginVariable); list != "" {
		var err error
		for _, path := range filepath.SplitList(list) {
			var found string
			if found, err = pluginAt(path, PluginVariable); err == nil {
				return found, nil
			}
		}
		return "", err
	}
	for _, folder := range packageFolders(getenv) {
		if found := pluginIn(folder); found != "" {
			return filepath.Abs(found)
		}
	}
	return "", fmt.Errorf("%w for NVIDIA cards in any Python environment: pip install 'jax[cuda13]' brings it, or name the file "+
		"xla_cuda_plugin.so with --plugin or %s", ErrNoPlugin, PluginVariable)
}

// pluginAt is the plugin at a path, or in it where it is a folder.
func pluginAt(path, source string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s leads nowhere: %w", ErrNoPlugin, source, err)
	}
	if info.IsDir() {
		found := pluginIn(path)
		if found == "" {
			return "", fmt.Errorf("%w: %s names the folder %s, which has no xla_cuda_plugin.so", ErrNoPlugin, source, path)
		}
		path = found
	}
	return filepath.Abs(path)
}

// pluginIn is the newest plugin in a folder, or "".
func pluginIn(folder string) string {
	for _, pattern := range pluginPatterns {
		if found := glob(filepath.Join(folder, pattern)); len(found) > 0 {
			return found[len(found)-1]
		}
	}
	return ""
}

// glob lists files by a pattern of this package, in order.
func glob(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		panic(fmt.Sprintf("xla: pattern %s: %v", pattern, err))
	}
	slices.Sort(found)
	return found
}

// mostLinks is how many links in a row are followed, as many as by Linux.
const mostLinks = 40

// packageFolders lists the folders of Python packages, the most particular first.
func packageFolders(getenv func(string) string) []string {
	var roots []string
	for _, variable := range []string{"VIRTUAL_ENV", "CONDA_PREFIX"} {
		if root := getenv(variable); root != "" {
			roots = append(roots, root)
		}
	}
	for _, folder := range filepath.SplitList(getenv("PATH")) {
		// A link to an interpreter leads to its environment, or round in a circle.
		name := filepath.Join(folder, "python3")
		for range mostLinks {
			info, err := os.Lstat(name)
			if err != nil {
				break
			}
			roots = append(roots, filepath.Dir(filepath.Dir(name)))
			if info.Mode()&os.ModeSymlink == 0 {
				break
			}
			next, err := os.Readlink(name)
			if err != nil {
				break
			}
			if !filepath.IsAbs(next) {
				next = filepath.Join(filepath.Dir(name), next)
			}
			name = next
		}
	}
	if home := getenv("HOME"); home != "" {
		roots = append(roots, filepath.Join(home, ".local"))
	}
	roots = append(roots, "/usr/local", "/usr")
	var folders []string
	for _, root := range roots {
		for _, name := range []string{"site-packages", "dist-packages"} {
			found := glob(filepath.Join(escape(root), "lib", "python3*", name))
			slices.Reverse(found)
			folders = append(folders, found...)
		}
	}
	return folders
}

// escape makes a path a pattern that matches itself.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// libraryEnvironment is what a process needs to load a plugin from a Python environment: the folders of NVIDIA's
// libraries beside it, and where the compiler finds its tools.
func libraryEnvironment(plugin string, getenv func(string) string) []string {
	packages := filepath.Dir(filepath.Dir(filepath.Dir(plugin)))
	libraries := glob(filepath.Join(escape(packages), "nvidia", "*", "lib"))
	if old := getenv("LD_LIBRARY_PATH"); old != "" {
		libraries = append(libraries, old)
	}
	flags := []string{"--xla_gpu_exclude_nondeterministic_ops=true"}
	for _, tools := range []string{"cu13", "cuda_nvcc"} {
		folder := filepath.Join(packages, "nvidia", tools)
		if _, err := os.Stat(filepath.Join(folder, "nvvm")); err == nil {
			flags = append(flags, "--xla_gpu_cuda_data_dir="+folder)
			break
		}
	}
	// The user's own flags come last and win.
	if own := getenv("XLA_FLAGS"); own != "" {
		flags = append(flags, own)
	}
	environment := []string{"XLA_FLAGS=" + strings.Join(flags, " ")}
	if len(libraries) > 0 {
		environment = append(environment, "LD_LIBRARY_PATH="+strings.Join(libraries, string(filepath.ListSeparator)))
	}
	if getenv("TF_CPP_MIN_LOG_LEVEL") == "" {
		environment = append(environment, "TF_CPP_MIN_LOG_LEVEL=1")
	}
	return environment
}

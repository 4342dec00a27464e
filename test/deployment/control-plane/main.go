// The control plane of Kubernetes itself, for specs of the manifests: its store, its API with all admission, its controllers and its scheduler, without
// any image. What a cluster has beside that, nodes and pods that say that they run, is simulated.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	"sigs.k8s.io/kwok/pkg/config"
	nodes "sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: control-plane store | api | controllers | scheduler | nodes, and the arguments of that"))
	}
	part := os.Args[1]
	os.Args = append(os.Args[:1], os.Args[2:]...)
	switch part {
	case "store":
		store(os.Args[1:])
	case "api":
		run(apiserver.NewAPIServerCommand())
	case "controllers":
		run(controllers.NewControllerManagerCommand())
	case "scheduler":
		run(scheduler.NewSchedulerCommand())
	case "nodes":
		simulateNodes()
	default:
		fail(fmt.Errorf("there is no part %q", part))
	}
}

// store takes a folder and two addresses, for clients and for members that there are none of.
func store(args []string) {
	if len(args) != 3 {
		fail(fmt.Errorf("usage: control-plane store FOLDER CLIENTS PEERS"))
	}
	config := embed.NewConfig()
	config.Dir = args[0]
	config.LogLevel = "warn"
	config.UnsafeNoFsync = true
	clients, peers := address(args[1]), address(args[2])
	config.ListenClientUrls, config.AdvertiseClientUrls = clients, clients
	config.ListenPeerUrls, config.AdvertisePeerUrls = peers, peers
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		fail(err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	select {
	case <-stop:
		etcd.Close()
	case err := <-etcd.Err():
		fail(err)
	}
}

// simulateNodes is what the main program of kwok does.
func simulateNodes() {
	// Kubernetes' own commands define flags for every command of a program, one of them with a name that is taken here.
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsWhitelist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, _ = log.InitFlags(ctx, flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err != nil {
		fail(err)
	}
	command := nodes.NewCommand(ctx)
	command.PersistentFlags().AddFlagSet(flags)
	if err := command.ExecuteContext(ctx); err != nil {
		fail(err)
	}
}

func address(text string) []url.URL {
	parsed, err := url.Parse(text)
	if err != nil {
		fail(err)
	}
	return []url.URL{*parsed}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

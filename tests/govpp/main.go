// A govpp client of a running router: compatibility, interfaces, events, a route, statistics. The
// bindings are govpp's own, generated from VPP's descriptions.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"time"

	"go.fd.io/govpp"
	"go.fd.io/govpp/adapter/statsclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/fib_types"
	interfaces "go.fd.io/govpp/binapi/interface"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/l2"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/binapi/sflow"
	"go.fd.io/govpp/binapi/vpe"
	"go.fd.io/govpp/core"
)

const all = ^interface_types.InterfaceIndex(0)

var (
	apiSocket   = flag.String("api", "/run/vpp/api.sock", "socket of the API")
	statsSocket = flag.String("stats", "/run/vpp/stats.sock", "socket of the statistics")
	patience    = flag.Duration("patience", 30*time.Second, "how long all may take")
)

func main() {
	log.SetFlags(0)
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), *patience)
	defer cancel()
	conn, states, err := govpp.AsyncConnect(*apiSocket, 3, time.Second)
	if err != nil {
		log.Fatal("connecting: ", err)
	}
	defer conn.Disconnect()
	select {
	case state := <-states:
		if state.State != core.Connected {
			log.Fatal("not connected: ", state.Error)
		}
	case <-ctx.Done():
		log.Fatal("no connection in time")
	}
	for _, step := range []struct {
		name string
		run  func(context.Context, *core.Connection) error
	}{
		{"compatibility", compatibility},
		{"version", version},
		{"interfaces and events", events},
		{"routes", routes},
		{"what fails", failures},
		{"sflow", sampling},
		{"statistics", statistics},
	} {
		if err := step.run(ctx, conn); err != nil {
			log.Fatalf("%s: %v", step.name, err)
		}
		fmt.Println(step.name + ": ok")
	}
}

// compatibility checks that the router supports messages with govpp's names and CRCs.
func compatibility(_ context.Context, conn *core.Connection) error {
	channel, err := conn.NewAPIChannel()
	if err != nil {
		return err
	}
	defer channel.Close()
	if err := channel.CheckCompatiblity(
		&memclnt.ControlPing{}, &memclnt.ControlPingReply{}, &memclnt.APIVersions{},
		&vpe.ShowVersion{}, &vpe.ShowVersionReply{},
		&interfaces.SwInterfaceDump{}, &interfaces.SwInterfaceDetails{},
		&interfaces.WantInterfaceEvents{}, &interfaces.SwInterfaceEvent{},
		&interfaces.SwInterfaceSetFlags{}, &interfaces.SwInterfaceAddDelAddress{},
		&ip.IPRouteAddDel{}, &ip.IPRouteAddDelReply{}, &ip.IPRouteDump{}, &ip.IPRouteDetails{},
		&l2.L2XconnectDump{}, &l2.L2XconnectDetails{},
		&sflow.SflowSamplingRateSet{}, &sflow.SflowSamplingRateGet{},
	); err != nil {
		return err
	}
	// A message that the router does not support is reported.
	var lacking *api.CompatibilityError
	err = channel.CheckCompatiblity(&l2.L2PatchAddDel{})
	if !errors.As(err, &lacking) {
		return fmt.Errorf("unsupported message: %v", err)
	}
	return nil
}

func version(ctx context.Context, conn *core.Connection) error {
	reply, err := vpe.NewServiceClient(conn).ShowVersion(ctx, &vpe.ShowVersion{})
	if err != nil {
		return err
	}
	if reply.Program == "" || reply.Version == "" {
		return fmt.Errorf("%+v", reply)
	}
	return nil
}

func dump(ctx context.Context, conn *core.Connection) (map[interface_types.InterfaceIndex]string, error) {
	stream, err := interfaces.NewServiceClient(conn).SwInterfaceDump(ctx,
		&interfaces.SwInterfaceDump{SwIfIndex: all})
	if err != nil {
		return nil, err
	}
	names := map[interface_types.InterfaceIndex]string{}
	for {
		details, err := stream.Recv()
		if err == io.EOF {
			return names, nil
		}
		if err != nil {
			return nil, err
		}
		names[details.SwIfIndex] = details.InterfaceName
	}
}

func events(ctx context.Context, conn *core.Connection) error {
	client := interfaces.NewServiceClient(conn)
	watcher, err := conn.WatchEvent(ctx, (*interfaces.SwInterfaceEvent)(nil))
	if err != nil {
		return err
	}
	defer watcher.Close()
	if _, err := client.WantInterfaceEvents(ctx, &interfaces.WantInterfaceEvents{
		PID: 4711, EnableDisable: 1}); err != nil {
		return err
	}
	loop, err := client.CreateLoopback(ctx, &interfaces.CreateLoopback{})
	if err != nil {
		return err
	}
	up := interface_types.IF_STATUS_API_FLAG_ADMIN_UP
	if _, err := client.SwInterfaceSetFlags(ctx, &interfaces.SwInterfaceSetFlags{
		SwIfIndex: loop.SwIfIndex, Flags: up}); err != nil {
		return err
	}
	names, err := dump(ctx, conn)
	if err != nil {
		return err
	}
	if names[0] != "local0" || names[loop.SwIfIndex] == "" {
		return fmt.Errorf("interfaces: %v", names)
	}
	if _, err := client.DeleteLoopback(ctx, &interfaces.DeleteLoopback{SwIfIndex: loop.SwIfIndex}); err != nil {
		return err
	}
	seen := []string{}
	for {
		select {
		case message := <-watcher.Events():
			event := message.(*interfaces.SwInterfaceEvent)
			if event.SwIfIndex != loop.SwIfIndex || event.PID != 4711 {
				return fmt.Errorf("unexpected event: %+v", event)
			}
			seen = append(seen, event.Flags.String())
			if event.Deleted {
				_, err := client.WantInterfaceEvents(ctx, &interfaces.WantInterfaceEvents{PID: 4711})
				if len(seen) < 3 {
					return fmt.Errorf("expected created, up and deleted: %v", seen)
				}
				return err
			}
		case <-ctx.Done():
			return fmt.Errorf("got only %v: %w", seen, ctx.Err())
		}
	}
}

func route(text string, path fib_types.FibPath) (ip.IPRoute, error) {
	prefix, err := ip_types.ParsePrefix(text)
	return ip.IPRoute{Prefix: prefix, NPaths: 1, Paths: []fib_types.FibPath{path}}, err
}

func routes(ctx context.Context, conn *core.Connection) error {
	client := ip.NewServiceClient(conn)
	wanted, err := route("203.0.113.0/24", fib_types.FibPath{
		SwIfIndex: uint32(all), Type: fib_types.FIB_API_PATH_TYPE_DROP})
	if err != nil {
		return err
	}
	if _, err := client.IPRouteAddDel(ctx, &ip.IPRouteAddDel{IsAdd: true, Route: wanted}); err != nil {
		return err
	}
	stream, err := client.IPRouteDump(ctx, &ip.IPRouteDump{})
	if err != nil {
		return err
	}
	found := false
	for {
		details, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		found = found || details.Route.Prefix.String() == wanted.Prefix.String()
	}
	if !found {
		return errors.New("the route is not dumped")
	}
	_, err = client.IPRouteAddDel(ctx, &ip.IPRouteAddDel{Route: wanted})
	return err
}

// failures checks that requests fail at once, with VPP's error codes.
func failures(ctx context.Context, conn *core.Connection) error {
	_, err := interfaces.NewServiceClient(conn).SwInterfaceSetFlags(ctx,
		&interfaces.SwInterfaceSetFlags{SwIfIndex: 9999})
	if !errors.Is(err, api.INVALID_SW_IF_INDEX) {
		return fmt.Errorf("missing interface: %v", err)
	}
	return nil
}

func sampling(ctx context.Context, conn *core.Connection) error {
	client := sflow.NewServiceClient(conn)
	if _, err := client.SflowSamplingRateSet(ctx, &sflow.SflowSamplingRateSet{SamplingN: 512}); err != nil {
		return err
	}
	got, err := client.SflowSamplingRateGet(ctx, &sflow.SflowSamplingRateGet{})
	if err != nil {
		return err
	}
	if got.SamplingN != 512 {
		return fmt.Errorf("%+v", got)
	}
	return nil
}

func statistics(context.Context, *core.Connection) error {
	stats, err := core.ConnectStats(statsclient.NewStatsClient(*statsSocket))
	if err != nil {
		return err
	}
	defer stats.Disconnect()
	var system api.SystemStats
	if err := stats.GetSystemStats(&system); err != nil {
		return fmt.Errorf("system statistics: %w", err)
	}
	// govpp does not support gauges, which VPP uses for all others.
	if system.Heartbeat == 0 || len(system.VectorRatePerWorker) < 2 {
		return fmt.Errorf("system statistics: %+v", system)
	}
	var ports api.InterfaceStats
	if err := stats.GetInterfaceStats(&ports); err != nil {
		return fmt.Errorf("interface statistics: %w", err)
	}
	packets := uint64(0)
	for _, port := range ports.Interfaces {
		if port.InterfaceName == "pg0" {
			packets = port.Rx.Packets
		}
	}
	if packets != 5 {
		return fmt.Errorf("expected 5 packets received on pg0: %+v", ports.Interfaces)
	}
	var nodes api.NodeStats
	if err := stats.GetNodeStats(&nodes); err != nil {
		return fmt.Errorf("node statistics: %w", err)
	}
	var reasons api.ErrorStats
	if err := stats.GetErrorStats(&reasons); err != nil {
		return fmt.Errorf("error statistics: %w", err)
	}
	if len(reasons.Errors) == 0 {
		return errors.New("no counters of errors")
	}
	var buffers api.BufferStats
	if err := stats.GetBufferStats(&buffers); err != nil {
		return fmt.Errorf("buffer statistics: %w", err)
	}
	return nil
}
